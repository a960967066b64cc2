"""A whole study, run for real: the cut-down mini study, from nothing to LaTeX."""

import csv
import json
import re
import shutil
from collections import Counter

import pytest
import yaml
from document import DOCUMENT
from studies import ROOT, changed, load, planned

from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import expand, figures

pytestmark = pytest.mark.slow
REPORT = ("tables", "claims", "figure", *DOCUMENT, "page")
ANALYSIS = ("collect", "summarise", "signals", "comparisons", *REPORT, "track")
STUDY = changed(load("mini"), load("cut-down"))
TRAINED = Counter(entry.run.setting for entry in expand(STUDY).values() if entry.run.method != UNTRAINED)
PLAN = ("plan", "overlap")
GENERATE = ("generate", "generate_together_1")
SIGN_FLIPS = ("rollouts", "grade_rollouts", "sign_flips")
FIGURES = figures(STUDY, expand(STUDY))


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def made_newer(study):
    """Every file and folder touched, data and models last."""
    for part in ("results", "reports", "resources"):
        for path in sorted((study.folder / part).rglob("*"), key=lambda path: -len(path.parts)):
            path.touch()


def test_it_makes_every_table_and_figure(finished):
    reports = finished.folder / "reports/quick"
    assert all(finished.tables().values())
    for figure in FIGURES:
        assert (reports / f"figures/{figure}.pdf").read_bytes().startswith(b"%PDF")
        assert (reports / f"figures/{figure}.png").read_bytes().startswith(b"\x89PNG")
    page = (reports / "report.html").read_text()
    assert "Does the median help?" in page and page.count("data:image/png") == len(FIGURES)
    assert re.search(r"--configfile \S+/config/mini.yaml \S+/config/cut-down.yaml</code>", page)


def test_two_methods_without_theirs_reach_their_report(finished, reported):
    """Both are trained and drawn already; the job of the untrained model, with a benchmark less, draws nothing."""
    study, said = reported(["grpo-plus1", "mc-grpo"])
    assert planned(said)["page"] == 1 and "train" not in planned(said)
    assert planned(said)["generate"] == planned(said)["grade"] == 1
    file = "toy-qwen3/none/G0/default/seed0/two-step"
    assert "is there already" in (study.folder / f"logs/quick/generate/{file}.log").read_text()
    for path in (f"results/quick/completions/{file}.jsonl", f"results/quick/grades/{file}.jsonl"):
        assert (study.folder / path).read_bytes() == (finished.folder / path).read_bytes()
    assert (study.folder / "reports/quick/report.html").is_file() and all(study.tables().values())


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


def test_the_runs_are_in_mlflow(finished):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{finished.folder}/mlflow.db")
    experiment = client.get_experiment_by_name("quick").experiment_id
    wanted = "tags.method = 'mc-grpo' AND tags.variant = 'default' AND tags.`mcgrpo.kind` = 'run'"
    found = [run.data.metrics for run in client.search_runs([experiment], wanted)]
    assert len(found) == 5 and all("accuracy/two-step/greedy" in metrics for metrics in found)


def test_a_store_that_fails_does_not_fail_the_study(finished):
    """A view: what could not be tracked is said."""
    log = finished.changed("tracking_uri: http://127.0.0.1:9").made("--forcerun", "track")
    assert "error: not tracked in MLflow (http://127.0.0.1:9)" in log and "mcgrpo track" in log


def test_a_second_call_runs_no_job_however_often_checkpoints_are_written(finished):
    assert finished.changed("save_steps: 3").jobs() == {}


@pytest.mark.parametrize(
    ("change", "rerun"),
    [
        ("equivalence_margin: 0.02", {"all", "plan", "overlap", *ANALYSIS}),
        ("primary: {num_generations: [2]}", {"all", "plan", "overlap", *ANALYSIS}),
        ("title: Another", {"all", "tables", "claims", *DOCUMENT, "page", "track"}),
        ("variants: {other: {rewards: {format: 1.0}}}", {"all", *PLAN, *ANALYSIS}),
        (
            "models: {toy-qwen3: {toy: {intermediate_size: 64}}}",
            {"all", "model", "warm_start", "train", *GENERATE, "grade", *SIGN_FLIPS, *ANALYSIS},
        ),
        ("evaluation: {max_new_tokens: 8}", {"all", *GENERATE, "grade", *SIGN_FLIPS, *ANALYSIS}),
        (
            "experiments: {sign-flips: {sign_flips: {subset_sizes: [2, 4]}}}",
            {"all", "plan", "overlap", "sign_flips", *ANALYSIS},
        ),
    ],
)
def test_a_change_reruns_what_it_concerns(finished, change, rerun):
    assert set(finished.changed(change).jobs()) == rerun


def test_a_hyper_parameter_retrains_its_runs_only(finished):
    assert finished.changed("settings: {toy-qwen3: {training: {beta: 0.1}}}").jobs()["train"] == TRAINED["toy-qwen3"]
    assert finished.changed("settings: {toy-llama: {training: {beta: 0.1}}}").jobs()["train"] == TRAINED["toy-llama"]
    flips = "experiments: {injected-flips: {injected_flips: {exact: [0.5]}}}"
    variant = f"variants: {{composite: {{training: {{beta: 0.1}}}}}}\n{flips}"
    assert finished.changed(variant).jobs()["train"] == 2 + 1


def test_the_order_of_keys_in_its_file_reruns_nothing_that_was_trained_or_drawn(finished):
    in_order = finished.folder / "in-order.yaml"
    in_order.write_text(yaml.safe_dump(STUDY))  # by the alphabet
    jobs = type(finished)(finished.folder, [in_order]).jobs()
    assert set(jobs) <= {"all", *PLAN, *ANALYSIS}


def test_as_many_processes_train_anew_where_rows_are_counted_for_each(finished):
    """Some variants say the rows of a process: what such a run is does not change with their number, a step does."""
    assert finished.changed("gpus: 2").jobs()["train"] == TRAINED.total()


def test_methods_that_are_compared_train_next_to_each_other(finished):
    """In the order in which trainings started; two run at a time, so neighbours may change places."""
    started = {}
    for path in finished.folder.glob("results/quick/runs/*/*/*/*/*/run.json"):
        setting, _, *cell = path.parent.relative_to(finished.folder / "results/quick/runs").parts
        started[path] = (json.loads(path.read_text())["outcome"]["started"], setting, *cell)
    order = [tuple(where) for _, *where in sorted(started.values())]
    spans = {where: len(order) - order[::-1].index(where) - order.index(where) for where in order}
    assert len(order) == TRAINED.total() and max(map(order.count, order)) > 2
    assert all(span <= order.count(where) + 3 for where, span in spans.items()), spans


def test_a_deleted_run_is_trained_anew(finished, tmp_path):
    study = finished.copied(tmp_path / "copy")
    shutil.rmtree(study.folder / "results/quick/runs/toy-qwen3/mc-grpo/G2/default/seed1")
    jobs = study.jobs()
    assert jobs["train"] == 1 and jobs["generate"] == jobs["grade"] >= 1


def test_a_benchmark_that_is_added_or_changed_is_drawn_alone(finished, tmp_path):
    """One job draws all benchmarks of a run, but keeps what is there; this study keeps its trained weights, too."""
    study, run = finished.copied(tmp_path / "copy"), "toy-llama/mc-grpo/G2/default/seed0"
    folder = study.folder / f"results/quick/completions/{run}"
    before = {"two-step": (folder / "two-step.jsonl").read_bytes()}
    target = f"results/quick/grades/{run}/three-step.jsonl"

    def drawn(study):
        """The benchmarks that a job draws."""
        assert study.jobs(target) == {"generate_together_1": 1, "grade": 1}
        study.made(target, "--quiet", "all")
        log = (study.folder / f"logs/quick/generate/{run}.log").read_text()
        kept = {name for name in ("two-step", "three-step") if f"{name}.jsonl is there already" in log}
        assert all((folder / f"{name}.jsonl").read_bytes() == before[name] for name in kept)
        assert ("drawing completions" in log) == (len(kept) < 2)
        return {"two-step", "three-step"} - kept

    study = study.changed("experiments: {headline-llama: {evaluate: [in, out]}}")
    assert not (folder / "three-step.jsonl").exists() and drawn(study) == {"three-step"}
    before["three-step"] = (folder / "three-step.jsonl").read_bytes()
    shorter = study.changed("evaluation: {by_benchmark: {three-step: {max_new_tokens: 4}}}")
    assert drawn(shorter) == {"three-step"} and (folder / "three-step.jsonl").read_bytes() != before["three-step"]


def test_a_copy_with_other_times_trains_and_generates_nothing(finished, tmp_path):
    """As `cp -r` makes it: every file and folder is new, what a training starts from newer than its results."""
    study = finished.copied(tmp_path / "copy")
    made_newer(study)
    assert not {"train", *GENERATE, "rollouts", "grade", "dataset", "model", "warm_start"} & study.jobs().keys()


def test_weights_of_a_local_folder_that_change_in_place_are_trained_on_anew(finished, tmp_path):
    study, run = finished.copied(tmp_path / "copy"), "results/quick/runs/toy-qwen3/grpo/G2/default/seed0"
    shutil.copytree(study.folder / "resources/warm_starts/quick/toy-qwen3", tmp_path / "model")
    study = study.changed(f"models: {{toy-qwen3: {{toy: null, warm_start: null, folder: {tmp_path}/model}}}}")
    study.made(run, "--quiet", "all")
    assert "train" not in study.jobs(run)
    with (tmp_path / "model/model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\1")
    assert study.jobs(run)["train"] == 1


def test_a_study_with_a_failing_run_is_reported_as_far_as_it_goes(finished, tmp_path):
    """The trainings of a variant fail (the model has no such layer): the rest is made, and tables name the gap."""
    study = finished.copied(tmp_path / "copy")
    shutil.rmtree(study.folder / "reports")
    broken = {"training": {"lora": {"r": 2, "target_modules": ["none-such"]}}}
    config = changed(STUDY, {"variants": {"composite": broken}, "experiments": {"main": {"num_generations": [2]}}})
    config["experiments"] = {name: config["experiments"][name] for name in ("main", "composite")}
    config["tracking_uri"] = None
    study = study.of(config)
    done = study.run("--keep-going", "--quiet", "rules")
    assert done.returncode != 0
    assert "What is finished can be reported" in done.log and "none-such" in done.log
    assert not {"train", *GENERATE} & planned(study.changed("partial: true").made("--quiet", "rules")).keys()
    cells = {(row["method"], row["variant"]): row for row in rows(study.folder / "results/quick/summary.csv")
             if row["measure"] == "greedy" and row["num_generations"] == "2" and row["role"] == "in"}  # fmt: skip
    missing, there = cells["mc-grpo", "composite"], cells["mc-grpo", "default"]
    assert (missing["planned"], missing["seeds"], missing["mean"]) == ("1", "0", "")
    assert (there["planned"], there["seeds"]) == ("1", "1")
    tables = (study.folder / "reports/quick/tables.md").read_text()
    assert "missing" in tables.split("## composite")[1].split("##")[0]
    assert "missing" not in tables.split("## main")[1].split("##")[0]
    page = (study.folder / "reports/quick/report.html").read_text()
    assert re.search(r"2 of \d+ planned trainings are not finished", page) and "none-such" in page
    made = (*(f"figures/{name}.png" for name in figures(config, expand(config))), *(f"{name}.pdf" for name in DOCUMENT))
    assert "figures/variants.png" in made and all((study.folder / "reports/quick" / name).is_file() for name in made)


def test_gsm8k_through_every_stage(empty):
    """To its tables and claims; figures and the page have only those to draw.

    Its data are larger than Snakemake compares by content of itself, as all real ones are: a copy trains nothing.
    """
    (empty.folder / "gsm8k").mkdir()
    for split in ("train", "test"):
        found = [json.loads(line) for line in (ROOT / f"tests/data/gsm8k/{split}.jsonl").read_text().splitlines()]
        lines = [json.dumps(row | {"answer": "So. " * 50_000 * (split == "train") + row["answer"]}) for row in found]
        (empty.folder / f"gsm8k/{split}.jsonl").write_text("\n".join(lines))
    config = changed(load("smoke"), {"datasets": {"gsm8k": {"folder": f"{empty.folder}/gsm8k"}}})
    study = empty.of(config | {"tracking_uri": None})
    targets = ["reports/smoke/headline.md", "reports/smoke/claims.md", "resources/data/smoke/gsm8k.audit.json"]
    study.made(*targets, "--quiet", "all")
    assert "tiny-random on gsm8k" in (study.folder / "reports/smoke/headline.md").read_text()
    audit = json.loads((study.folder / "resources/data/smoke/gsm8k.audit.json").read_text())
    assert {name: split["rows"] for name, split in audit["splits"].items()} == {"train": 10, "test": 6}
    made_newer(study)
    assert not {"train", "generate", "grade", "dataset", "model"} & study.jobs(*targets).keys()
    with (empty.folder / "gsm8k/test.jsonl").open("a") as file:
        file.write(json.dumps({"question": "1+1?", "answer": "#### 2"}) + "\n")
    assert study.jobs(*targets).keys() >= {"dataset", "generate", "grade"}
