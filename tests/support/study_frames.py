"""A small synthetic study for the tests of summary, tables and figures: scores and curves with known effects."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from mcgrpo.analyse import scored
from mcgrpo.analyse.comparisons import comparisons
from mcgrpo.analyse.comparisons import main as compare
from mcgrpo.analyse.frames import read_cells
from mcgrpo.analyse.records import Cell, Contrast, Score
from mcgrpo.analyse.scored import Scores, read_scores
from mcgrpo.analyse.summarise import main, summarise
from mcgrpo.records import Plan, Primary, Run, SignFlips
from mcgrpo.study.methods import METHODS, is_median
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import write_plan
from mcgrpo.sums import write_table

NOISE = (-0.02, 0.0, 0.02)
"""One value per seed: shared by all methods, so that paired differences are exact."""


def score(method, budget, seed, value, *, measure="greedy", benchmark="sums", role="in", setting="toy_a", **other):
    fields = {"variant": "default", "n": 100} | other
    return Score(
        setting, method, budget, seed=seed, benchmark=benchmark, role=role, measure=measure, value=value, **fields
    )


def cell_scores(method, budget, mean, wobble=(0.0, 0.0, 0.0), **other):
    """A score for each seed: mean + shared noise + the method's own wobble."""
    return [score(method, budget, s, mean + NOISE[s] + wobble[s], **other) for s in range(len(NOISE))]


def seconds(method, budget, value):
    return score(method, budget, 0, value, measure="seconds", benchmark="train", role="train", n=40)


def study() -> list[Score]:
    """MC-GRPO: better at G=2 (sampled), worse greedy, missing at G=4; the control: like GRPO."""
    jitter = (-0.001, 0.0, 0.001)
    rows = [score("none", 0, 0, 0.3), score("none", 0, 0, 0.1, measure="avg@4")]
    for budget in (2, 4):
        rows += cell_scores("grpo", budget, 0.5) + cell_scores("grpo", budget, 0.4, measure="avg@4")
        rows += [seconds("grpo", budget, 10.0 * budget)]
    rows += cell_scores("mc-grpo", 2, 0.44, jitter) + cell_scores("mc-grpo", 2, 0.45, jitter, measure="avg@4")
    wide = (-0.1, 0.0, 0.1)
    rows += cell_scores("grpo-plus1", 2, 0.51, wide) + cell_scores("grpo-plus1", 2, 0.41, wide, measure="avg@4")
    return [*rows, seconds("mc-grpo", 2, 23.0), seconds("grpo-plus1", 2, 24.0)]


def write_scores(folder: Path, rows: list[Score], spread=0.0) -> Path:
    scored.write_scores(folder / "scores.jsonl", with_values(rows, spread))
    return folder / "scores.jsonl"


def scores_by_cell(folder: Path, rows: list[Score], spread=0.0) -> Scores:
    """The scores as every reader gets them: through the file."""
    return read_scores(write_scores(folder, rows, spread))


def with_values(rows: list[Score], spread=0.0) -> list[Score]:
    """Values with the scores' means over 4k problems: half of them `spread` above, half below, and others for a method
    than for its baseline. Without spread all noise is that of seeds: t intervals over them. Trainings have no values.
    """
    found = []
    for row in rows:
        length = 2 if row.method in METHODS and METHODS[row.method].baseline else 1
        if row.role != "train" and row.values is None:
            values = [row.value + (spread if problem // length % 2 else -spread) for problem in range(row.n)]
            row = replace(row, values=values, problems=f"{row.benchmark}-{row.n}")
        found.append(row)
    return found


def run_of(row: Score) -> Run:
    cell = {name: getattr(row, name) for name in ("setting", "method", "num_generations", "variant", "seed")}
    return Run("test", **cell, model="", dataset="", prompt="", task="", loss_type="", estimator="", rewards={})


def plan_of(rows: list[Score]) -> Plan:
    """A plan of these scores' runs, and of a median-centred method wherever its baseline is."""
    baselines = {METHODS[row.method].baseline: row.method for row in rows if is_median(row.method)}
    beside = [replace(row, method=baselines[row.method]) for row in rows if row.method in baselines]
    runs, evaluations, flips = {}, {}, {}
    for row in [*rows, *beside]:
        run = run_of(row)
        runs[run.name] = run
        benchmarks = evaluations.setdefault(run.name, {})
        if row.role == "flips":
            flips[run.name] = SignFlips(row.benchmark, 1, 9, [2], 1.0)
        elif row.role != "train":
            benchmarks[row.benchmark] = row.role
    return Plan(
        study="test",
        runs=list(runs.values()),
        benchmarks={setting: {} for setting in sorted({row.setting for row in rows})},
        evaluations=evaluations,
        flips=flips,
        grading=["paper"],
        equivalence_margin=0.01,
        measures=["greedy", "avg@4"],
        primary=Primary("avg@4", []),
    )


def cells(folder, rows, plan=None, spread=0.0, printed=None):
    """The rows of the summary by what they are of, each beside its pairs."""
    plan, files = plan or plan_of(rows), ResultFiles(folder)
    scores = scores_by_cell(folder, rows, spread)
    write_table(files.summary, Cell, summarise(plan, scores, printed))
    write_table(files.comparisons, Contrast, comparisons(plan, [], scores, printed))
    frame = read_cells(files).astype(object)
    found = [SimpleNamespace(**row) for row in frame.where(frame.notna(), None).to_dict("records")]
    return {(c.method, c.num_generations, c.variant, c.benchmark, c.measure): c for c in found}


def cell(found, method, measure="greedy", budget=2, variant="default", benchmark="sums"):
    return found[method, budget, variant, benchmark, measure]


def command(folder, plan, rows):
    write_plan(folder / "plan.json", plan)
    write_scores(folder, rows, 0.2)
    main(["--results", str(folder)])
    compare(["--results", str(folder)])
    return folder / "summary.csv"
