"""A small study on disk, with something for every table, figure and section of the page."""

from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np
from answers import comparisons_of, plan_of
from cells import cell, flip, seconds, study, write_cells
from claim_rows import pair, scores_of
from matplotlib import image
from runs import RUN, write_sealed

from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.records import CellSignal, CurvePoint, SignalPoint
from mcgrpo.estimators.table import BUILT_IN
from mcgrpo.report.page.__main__ import main
from mcgrpo.study.methods import METHODS
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import write_plan
from mcgrpo.sums import write_table

ROOT = Path(__file__).parents[2]
COMMIT = "c0ffee" + "0" * 34
OUTCOME = {
    "status": "finished",
    "started": 1795293682.5,
    "seconds": 61.0,
    "steps": 3,
    "commit": COMMIT,
    "device": "cpu",
    "gpus": 0,
    "rollouts": "transformers",
    "versions": {"torch": "2.13.0", "trl": "1.16.0"},
}
PLACES = [(method, budget, seed, "default") for method in ("grpo", "mc-grpo") for budget in (2, 4) for seed in (0, 1)]
RUNS = [
    replace(
        RUN,
        setting="toy_a",
        method=method,
        num_generations=budget,
        seed=seed,
        variant=variant,
        training={"learning_rate": 1e-4 if variant == "default" else 2e-4},
    )
    for method, budget, seed, variant in (*PLACES, ("grpo", 4, 0, "flip-exact-0.25"))
]
PLAN = replace(plan_of(["toy_a"], runs=RUNS), selections={"best": ["default", "flip-exact-0.25"]})
TRAIN = {"benchmark": "train", "role": "train", "half": None, "n": 40}
EQUAL = {"": -0.02, "_generations": 3, "_low": -0.03, "_high": -0.01, "_seeds": 2, "_verdict": "worse"}
STABLE = {"worst": 0.3, "collapsed": 1 / 3, **{f"same_rollouts{name}": value for name, value in EQUAL.items()}}
ROLLOUTS = [("grpo", 2, 640, "default"), ("mc-grpo", 2, 960, "default"), ("grpo", 3, 960, "default"),
            ("grpo", 2, 640, "rival-sign")]  # fmt: skip


def everything():
    """The study of `cells`, and rows of every other table: published numbers, variants, flips, rivals, stability."""
    paper = {"published": 0.8354, "published_difference": 0.0462, "difference_excludes_published": True}
    change, gain = (-0.04, -0.05, -0.03), (0.1, 0.05, 0.15)
    far, other = {"benchmark": "chains", "role": "out"}, {"setting": "toy_b"}
    for row in study():
        is_median = (row.method, row.num_generations, row.measure) == ("mc-grpo", 2, "avg@4")
        yield replace(row, **STABLE) if is_median else row
    yield from (cell("grpo", 2, 0.5, published=0.7892, **far), cell("mc-grpo", 2, 0.6, gain=gain, **far, **paper))
    for budget, excludes in ((4, False), (8, None)):
        yield cell("mc-grpo", budget, 0.6, gain=gain, **far, **paper | {"difference_excludes_published": excludes})
    yield from (cell("grpo", 2, 0.5, published=0.79, variant="composite"), cell("dapo", 2, 0.5, **other))
    yield cell("mc-dapo", 2, 0.5, gain=(0.0, -0.004, 0.005), seeds=2, **other)
    yield cell("mc-dapo", 4, 0.6, gain=gain, difference_seeds=2, **other)
    yield from (seconds("grpo", 2, published=1316.0, **other), seconds("mc-grpo", 2, 10.0, published=1521.0, **other))
    yield from (cell("grpo", 4, 0.4, variant=f"flip-{rate}", change=change) for rate in ("0.4", "exact-0.25", "0.05"))
    yield cell("mc-grpo", 2, 0.6, variant="released", gain=gain, change=(0.1, -0.01, 0.2))
    yield from (
        cell("grpo", 2, 0.45, variant="rival-sign", change=change, measure=name) for name in ("greedy", "avg@4")
    )
    yield from (cell("grpo", 2, variant="rival-none", measure="avg@4"), cell("grpo", 3, 0.54, measure="avg@4"))
    for method, budget, rollouts, variant in ROLLOUTS:
        yield cell(method, budget, rollouts, variant=variant, measure="rollouts", **TRAIN)
    numbers = {"frac_effective": 0.2512, "grad_norm": 528.4, "frac_grad_clipped": 1.0, "clip_ratio": 0.00125}
    yield from (cell("mc-grpo", 2, value, measure=name, **TRAIN) for name, value in numbers.items())
    for method, budget, values in (("none", 0, (0.2, 0.3)), ("grpo", 2, (0.5, 0.6)), ("mc-grpo", 2, (0.55, 0.65))):
        yield from (cell(method, budget, value, measure=f"pass@{k}") for k, value in zip((2, 4), values, strict=True))
    yield from (
        cell("mc-grpo", 2, value, measure=f"entropy_{end}", **TRAIN) for end, value in (("first", 0.9), ("last", 0.4))
    )
    for baseline in ("mean", "median"):
        yield flip(f"{baseline}/oracle-mean/zeros/k2", 0.2)


def point(method, budget, seed, step, seconds=(1.0, 0.1, 0.4, 2.5), reward=0.5, accuracy=0.25):
    """One step of a run, of 8 prompts; only its rollouts, their accuracy and reward, and its seconds are filled."""
    names = CurvePoint.__dataclass_fields__
    return CurvePoint(
        **dict.fromkeys(names)
        | {"setting": "toy_a", "method": method, "num_generations": budget, "variant": "default"}
        | {"seed": seed, "step": step, "reward": reward, "accuracy": accuracy}
        | {"rollouts": 8 * (budget + BUILT_IN[METHODS[method].estimator].extra_rollouts)}
        | dict(zip([name for name in names if name.startswith("seconds_")], seconds, strict=True))
    )


def curves(methods=("grpo", "mc-grpo"), steps=3):
    """Rewards of three seeds that rise, and seconds that grow with G."""
    for place, method in enumerate(methods):
        for budget in (2, 4):
            for seed in range(3):
                for step in range(1, steps + 1):
                    times = (0.3 * budget, 0.01 * budget, 0.1 * budget, 0.6 * budget)
                    yield point(method, budget, seed, step, times, 0.3 + 0.02 * step + 0.05 * place + 0.05 * seed)


SOURCE = "toy_a/none/G0/default/seed0"


def signal_points():
    """Curves whose signal is p (1 - p), and whose objective is p times G."""
    return [
        SignalPoint("toy_a", SOURCE, method, budget, rate, rate * (1 - rate), rate * budget)
        for method in ("grpo", "mc-grpo", "dapo")
        for budget in (2, 4)
        for rate in (0.25, 0.5, 0.75)
    ]


def cell_signals():
    """Four cells, of which the three that are told from 0 gained in the direction that was computed."""
    gains = ((2, -0.4, -0.03), (4, -0.3, -0.02), (8, -0.1, 0.001), (16, 0.2, 0.03))
    numbers = {"drawn": 3, "prompts": 128, "success": 0.3, "per_step": 1.0, "per_rollout": 0.1, "per_row": 0.1}
    return [
        CellSignal(
            "toy_a", SOURCE, "mc-grpo", budget, "default", **numbers, of_best=0.5, kind="difference", baseline="grpo",
            predicted=predicted, measure="avg@4", gain=gain, gain_low=gain - 0.01, gain_high=gain + 0.01,
            gain_verdict="better" if gain > 0.01 else "worse" if gain < -0.01 else "equivalent",
        )
        for budget, predicted, gain in gains
    ]  # fmt: skip


@cache
def evaluated():
    """The project's claims and the control, over gains of which some are sure and some are not."""
    gains = [pair(gain, 0.03, budget=g, setting="toy_a") for g, gain in ((2, 0.05), (4, -0.04), (8, 0.0))]
    scores = scores_of(*gains, pair(0.04, 0.02, method="grpo-plus1", setting="toy_a"))
    rows = comparisons_of(PLAN, scores, claims=read_claims(ROOT / "config/claims.yaml"))
    return [row for row in rows if row.kind in (None, "control")]


def outcome_of(results, run, folder="runs", **changes):
    write_sealed(results / folder / run.name / "run.json", asdict(run) | {"outcome": OUTCOME | changes})


def write_results(folder, cells=None, curve_points=None, signals=None):
    """The study's CSV files and plan; without other rows, its own."""
    files, cells = ResultFiles(folder), [*everything()] if cells is None else cells
    write_cells(files, cells, evaluated())
    write_table(files.curves, CurvePoint, curves() if curve_points is None else curve_points)
    write_table(files.signals, CellSignal, cell_signals() if signals is None else signals)
    write_table(files.signal_curves, SignalPoint, signal_points() if signals is None else [])
    write_plan(files.plan, PLAN)
    return folder


class PageStudy:
    """The study's folders, with its runs, and its page."""

    def __init__(self, folder: Path):
        self.results, self.reports = write_results(folder / "results/toy"), folder / "reports/toy"
        for each in RUNS:
            outcome_of(self.results, each)

    def draw(self, name):
        """A picture of noise in a figure's place."""
        (self.reports / "figures").mkdir(parents=True)
        image.imsave(self.reports / f"figures/{name}.png", np.random.default_rng(0).random((30, 60, 3)))

    def made(self, *figures) -> Path:
        places = ["--results", str(self.results), "--reports", str(self.reports), "--title", "Toy study"]
        main([*places, "--figures", *figures])
        return self.reports / "report.html"
