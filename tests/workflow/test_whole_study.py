"""A whole study, run for real: the cut-down mini study, from nothing to LaTeX."""

import csv
import json
import random
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from document import DOCUMENT
from studies import changed, load

pytestmark = pytest.mark.slow
ANALYSIS = ("collect", "summarise", "contrasts", "tables", "claims", "figure", *DOCUMENT, "page", "track")
TRAINED = 2 * (14 + 2 + 2) + 2 + 2 + 1 + 2 + 4 + 5 + 1  # two seeds of the grid, composite and flips; one of the others
OF_LLAMA = 2 * 3  # two seeds of the headline
PLAN = ("plan", "overlap")
SIGN_FLIPS = ("rollouts", "grade_rollouts", "sign_flips")
FIGURES = (
    "overview", "gains-sampled", "gains-greedy", "accuracy-first", "accuracy-greedy", "accuracy-sampled", "rewards",
    "latency", "ood", "composite", "injected-flips", "variants", "sign-flips", "sign-flip-conventions",
)  # fmt: skip


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_it_makes_every_table_and_figure(finished):
    reports = finished.folder / "reports/quick"
    assert all(finished.tables().values())
    for figure in FIGURES:
        assert (reports / f"figures/{figure}.pdf").read_bytes().startswith(b"%PDF")
        assert (reports / f"figures/{figure}.png").read_bytes().startswith(b"\x89PNG")
    page = (reports / "report.html").read_text()
    assert "Does the median help at G=2 here?" in page and page.count("data:image/png") == len(FIGURES)


def test_the_headline_comes_first(finished):
    """An answer of the first seeds, made before the trainings that it needs nothing of."""
    answer = finished.folder / "reports/quick/after-2-seeds"
    assert (answer / "headline.md").read_text().startswith("With 2 of 2 seeds: **Does the median help at G=2 here?**")
    assert (answer / "gains-sampled.png").read_bytes().startswith(b"\x89PNG")
    made = (answer / "headline.md").stat().st_mtime
    others = finished.folder.glob("results/quick/runs/*/*/G4/*/*/run.json")
    assert sum(json.loads(path.read_text())["outcome"]["started"] > made for path in others) > 3


@pytest.mark.parametrize("methods", [["grpo"], ["mc-grpo"], ["grpo-plus1", "mc-grpo"]], ids="+".join)
def test_any_methods_reach_their_report(finished, tmp_path, methods):
    """A study without a median, of one without its mean, of two without theirs; what they train is there already."""
    study = finished.copied(tmp_path / "study")
    shutil.rmtree(study.folder / "reports")
    config = changed(load("mini"), load("cut-down"))
    config["experiments"] = {"main": {**config["experiments"]["main"], "methods": methods}}
    (study.folder / "subset.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    study.configfiles = ["--configfile", str(study.folder / "subset.yaml")]
    page = "reports/quick/report.html"
    assert not {"train", "generate", "grade"} & study.jobs(page).keys()
    study.made(page, "--quiet", "rules")
    assert (study.folder / page).is_file() and all(study.tables().values())


def test_every_number_comes_from_its_runs(finished):
    """One accuracy of the tables followed back to its verdicts by hand."""
    results = finished.folder / "results/quick"
    cell = {"setting": "toy-qwen3", "method": "mc-grpo", "num_generations": "2", "variant": "default"}
    cell |= {"role": "in", "measure": "greedy"}
    (found,) = [row for row in rows(results / "summary.csv") if cell.items() <= row.items()]
    accuracies = []
    for seed in (0, 1):
        grades = results / f"grades/toy-qwen3/mc-grpo/G2/default/seed{seed}/two-step.jsonl"
        verdicts = [json.loads(line) for line in grades.read_text().splitlines()]
        greedy = [row["verdict"] in ("correct", "equivalent") for row in verdicts if row["decoding"] == "greedy"]
        accuracies.append(sum(greedy) / len(greedy))
    assert float(found["mean"]) == pytest.approx(sum(accuracies) / 2)
    assert found["seeds"] == "2" and found["n"] == "32"


def test_g_plus_one_rollouts_were_drawn_and_g_trained_on(finished):
    for method, drawn in (("grpo", 4), ("mc-grpo", 5), ("grpo-plus1", 5)):
        folder = finished.folder / f"results/quick/runs/toy-qwen3/{method}/G4/default/seed0"
        steps = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        verdicts = ("correct", "equivalent", "wrong", "unparseable", "timeout", "error")
        assert [step["step"] for step in steps] == [1, 2, 3, 4]
        assert all(sum(step[f"verdicts/{verdict}"] for verdict in verdicts) == 8 * drawn for step in steps)
        assert json.loads((folder / "run.json").read_text())["outcome"]["status"] == "finished"


def test_the_runs_are_in_mlflow(finished):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{finished.folder}/mlflow.db")
    experiment = client.get_experiment_by_name("quick")
    wanted = "tags.method = 'mc-grpo' AND tags.variant = 'default' AND tags.`mcgrpo.kind` = "
    found = client.search_runs([experiment.experiment_id], f"{wanted} 'training'")
    parents = client.search_runs([experiment.experiment_id], f"{wanted} 'cell'")
    cells = {run.info.run_id: run.data.metrics for run in parents}
    assert {run.data.tags["mlflow.parentRunId"] for run in found} == set(cells)
    assert all(cell["seeds"] == 2 and "difference/two-step/greedy_low" in cell for cell in cells.values())
    assert len(found) == 6 and len({run.info.run_name for run in found}) == 6
    assert {run.info.status for run in found} == {"FINISHED"}
    for run in found:
        assert len(client.get_metric_history(run.info.run_id, "drawn/reward")) == 4
        assert "accuracy/two-step/greedy" in run.data.metrics


def test_a_second_call_runs_no_job(finished):
    assert finished.jobs() == {}


@pytest.mark.parametrize(
    ("change", "rerun"),
    [
        ("equivalence_margin: 0.02", {"all", "plan", "overlap", *ANALYSIS}),
        ("title: Another", {"all", "tables", "claims", *DOCUMENT, "page", "track"}),
        ("variants: {other: {rewards: {format: 1.0}}}", {"all", *PLAN, *ANALYSIS}),
        ("evaluation: {max_new_tokens: 8}", {"all", "generate", "grade", "answer", *SIGN_FLIPS, *ANALYSIS}),
        (
            "experiments: {sign-flips: {sign_flips: {subsamples: 5}}}",
            {"all", "plan", "overlap", "sign_flips", *ANALYSIS},
        ),
    ],
)
def test_a_change_reruns_what_it_concerns(finished, change, rerun):
    assert set(finished.changed(change).jobs()) == rerun


def test_a_hyper_parameter_retrains_its_runs_only(finished):
    assert finished.changed("settings: {toy-qwen3: {training: {beta: 0.1}}}").jobs()["train"] == TRAINED
    assert finished.changed("settings: {toy-llama: {training: {beta: 0.1}}}").jobs()["train"] == OF_LLAMA
    assert finished.changed("variants: {composite: {training: {beta: 0.1}}}").jobs()["train"] == 2 * 2
    assert finished.changed("experiments: {injected-flips: {injected_flips: {exact: [0.5]}}}").jobs()["train"] == 2


def test_how_a_study_is_run_is_no_reason_to_run_it_again(finished):
    assert finished.changed("save_steps: 3").jobs() == {}


def test_as_many_processes_train_anew_where_rows_are_counted_for_each(finished):
    """Some variants say the rows of a process: what such a run is does not change with their number, a step does."""
    assert finished.changed("gpus: 2").jobs()["train"] == TRAINED + OF_LLAMA


def test_methods_that_are_compared_train_next_to_each_other(finished):
    """In the order in which trainings started; two run at a time, so neighbours may change places."""
    started = {}
    for path in finished.folder.glob("results/quick/runs/*/*/*/*/*/run.json"):
        setting, _, *cell = path.parent.relative_to(finished.folder / "results/quick/runs").parts
        started[path] = (json.loads(path.read_text())["outcome"]["started"], setting, *cell)
    order = [tuple(where) for _, *where in sorted(started.values())]
    spans = {where: len(order) - order[::-1].index(where) - order.index(where) for where in order}
    assert len(order) == TRAINED + OF_LLAMA and max(map(order.count, order)) > 2
    assert all(span <= order.count(where) + 3 for where, span in spans.items()), spans


def test_a_deleted_run_is_trained_anew_and_progress_says_so(finished, tmp_path):
    study = finished.copied(tmp_path / "copy")
    shutil.rmtree(study.folder / "results/quick/runs/toy-qwen3/mc-grpo/G2/default/seed1")
    jobs = study.jobs()
    left = sum(jobs.get(rule, 0) for rule in ("train", "generate", "grade", "rollouts", "grade_rollouts", "sign_flips"))
    assert jobs["train"] == 1 and jobs["generate"] == jobs["grade"] >= 1
    command = [
        sys.executable,
        "-m",
        "mcgrpo.commands.progress",
        *study.configfiles[1:],
        "--directory",
        str(study.folder),
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"{left} jobs left" in said


def test_a_copy_with_other_times_trains_and_generates_nothing(finished, tmp_path):
    """As `cp -r` makes it: every file and folder is new, what a training starts from newer than its results."""
    study = finished.copied(tmp_path / "copy")
    for part in ("results", "reports", "resources"):
        for path in sorted((study.folder / part).rglob("*"), key=lambda path: -len(path.parts)):
            path.touch()
    assert not {"train", "generate", "rollouts", "grade", "dataset", "model"} & study.jobs().keys()


def test_a_figure_alone(finished):
    assert finished.jobs("--force", "reports/quick/figures/rewards.pdf") == {"figure": 1}


def test_a_study_with_a_failing_run_is_reported_as_far_as_it_goes(finished, tmp_path):
    """The trainings of a variant fail (the model has no such layer): the rest is made, and tables name the gap."""
    broken = "variants: {composite: {training: {lora: {r: 2, target_modules: [none-such]}}}}"
    study = finished.copied(tmp_path / "copy").changed(broken)
    done = study.run("--keep-going", "--quiet", "rules")
    assert done.returncode != 0
    assert "What is finished can be reported" in done.log and "none-such" in done.log
    partial = study.changed("partial: true")
    assert "train" not in partial.jobs() and "generate" not in partial.jobs()
    partial.made("--quiet", "rules")
    cells = {(row["method"], row["variant"]): row for row in rows(study.folder / "results/quick/summary.csv")
             if row["measure"] == "greedy" and row["num_generations"] == "2" and row["role"] == "in"}  # fmt: skip
    missing, there = cells["mc-grpo", "composite"], cells["mc-grpo", "default"]
    assert (missing["planned"], missing["seeds"], missing["mean"]) == ("2", "0", "")
    assert (there["planned"], there["seeds"]) == ("2", "2")
    tables = (study.folder / "reports/quick/tables.md").read_text()
    assert "missing" in tables.split("## composite")[1].split("##")[0]
    assert "missing" not in tables.split("## main")[1].split("##")[0]
    page = (study.folder / "reports/quick/report.html").read_text()
    assert re.search(r"4 of \d+ planned trainings are not finished", page) and "none-such" in page
    made = study.folder / "reports/quick/reproduction.pdf"
    assert not DOCUMENT or made.stat().st_mtime > (study.folder / "results/quick/summary.csv").stat().st_mtime


def test_what_is_left_of_a_killed_study_is_reported(empty):
    assert empty.killed_after(40)
    partial = empty.changed("partial: true")
    partial.made("--nolock", "--quiet", "rules")
    assert "missing" in empty.tables()["tables.md"].decode()
    assert all((empty.folder / f"reports/quick/figures/{figure}.png").is_file() for figure in FIGURES)


def test_a_study_killed_at_twenty_moments_ends_with_the_same_tables(finished, empty):
    """SIGKILL for Snakemake and its jobs, in planning, training, generation and analysis as it falls.

    Once within a training that has a checkpoint, however fast the machine is.
    """
    moments = random.Random(0)
    checkpoints = "results/quick/unfinished/**/checkpoint-[12]/complete.json"
    assert empty.killed_when(lambda: any(empty.folder.glob(checkpoints)), "--nolock")
    assert all(empty.killed_after(moments.uniform(4, 8), "--nolock") for _ in range(19))
    empty.made("--nolock", "--quiet", "all")
    logs = [path.read_text() for path in empty.folder.glob("logs/quick/train/**/*.log")]
    assert any("going on from" in log for log in logs), "no training was resumed"
    assert not [path for path in empty.folder.glob("results/quick/unfinished/**/*") if path.is_file()]
    assert empty.tables() == finished.tables()
    assert empty.jobs() == {}


def test_the_composite_reward_and_the_other_architecture(finished):
    composite = "{settings: [toy-llama], methods: [mc-grpo], num_generations: [2], variants: [composite]}"
    overlay = f"experiments: {{composite: {composite}}}"
    run = "results/quick/runs/toy-llama/mc-grpo/G2/composite/seed0"
    finished.changed(overlay).made(run, "--quiet", "all")
    steps = [json.loads(line) for line in (finished.folder / run / "metrics.jsonl").read_text().splitlines()]
    for step in steps:  # TRL's means are over the kept rows, as is its `reward`: the sum of both under weights of 1
        parts = step["rewards/accuracy_reward/mean"] + step["rewards/format_reward/mean"]
        assert step["reward"] == pytest.approx(parts)
    assert len(steps) == 4 and any(step["rewards/format_reward/mean"] > 0 for step in steps)


def test_gsm8k_through_every_stage(empty, root):
    empty.configfiles = ["--configfile", str(root / "config/smoke.yaml")]
    empty.made("--quiet", "all", "--config", f"datasets={{gsm8k: {{folder: {root}/tests/data/gsm8k}}}}")
    assert "tiny-random on gsm8k" in (empty.folder / "reports/smoke/headline.md").read_text()
    audit = json.loads((empty.folder / "resources/data/smoke/gsm8k.audit.json").read_text())
    assert {name: split["rows"] for name, split in audit["splits"].items()} == {"train": 10, "test": 6}


def test_a_broken_line_of_data_is_named(empty, root):
    data = empty.folder / "gsm8k"
    data.mkdir()
    (data / "train.jsonl").write_text('{"question": "1+1?", "answer": "#### 2"}\n{"question": "1+2?", answer}\n')
    (data / "test.jsonl").write_text('{"question": "1+1?", "answer": "#### 2"}\n')
    empty.configfiles = ["--configfile", str(root / "config/smoke.yaml")]
    done = empty.run("--config", f"datasets={{gsm8k: {{folder: {data}}}}}")
    assert done.returncode != 0
    assert f"{data}/train.jsonl:2: not valid JSON" in done.log
    assert not (empty.folder / "results/smoke/runs").exists()
