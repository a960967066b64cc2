"""The forecast of a study. Its steps are held against real trainings, its sizes against real models."""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import fake_hub
import pytest
import runs
import studies
import yaml

from mcgrpo.commands.forecast import sizes as sizes_of
from mcgrpo.commands.forecast.batches import batches
from mcgrpo.commands.forecast.memory import GIB, memory
from mcgrpo.commands.forecast.sizes import VOCABULARIES, Model, of_folder, of_toy, sizes
from mcgrpo.commands.forecast.space import STORE_STEP_BYTES, kept, to_download, while_training
from mcgrpo.commands.forecast.table import Job, Row, rows, total, wall_seconds
from mcgrpo.commands.forecast.times import Estimate
from mcgrpo.files import write_json, write_jsonl
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import planned
from mcgrpo.tracking.series import METRIC_BYTES, STEP_METRICS

ROOT = Path(__file__).parents[2]
MINI, PAPER = studies.load("mini"), studies.load("config")
TINY = {"architecture": "qwen3", "hidden_size": 32, "heads": 1, "layers": 1, "intermediate_size": 32}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to run a study in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trainings(config):
    return {name: entry.run for name, entry in planned(config).items() if entry.run.method != UNTRAINED}


def finish(run, seconds, **outcome):
    """What a finished training leaves."""
    record = {**asdict(run), "outcome": {"status": "finished", "seconds": seconds, "steps": 40, **outcome}}
    write_json(Path("results", run.study, "runs", run.name, "run.json"), record)


def forecast(config):
    return rows(config, sizes(config))


def by_name(found):
    return {row.experiment: row for row in found}


def test_every_training_counts_once_in_the_first_experiment_that_asks_for_it(here):
    found = forecast(MINI)
    assert sorted(job.name for row in found for job in row.jobs) == list(planned(MINI))
    assert len(total(found).to_train) == total(found).trainings == len(trainings(MINI))
    control, ood = by_name(found)["control"], by_name(found)["ood"]
    assert (control.trainings, control.shared, len(control.to_train)) == (45, 30, 15)
    assert (ood.trainings, ood.shared, len(ood.jobs)) == (20, 20, 0)


@pytest.mark.slow
def test_snakemake_would_train_as_often(tmp_path):
    command = ["snakemake", "--snakefile", str(ROOT / "Snakefile"), "--configfile", str(ROOT / "config/mini.yaml")]
    command += ["--directory", str(tmp_path), "--dry-run", "--quiet", "rules"]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = dict(line.split() for line in (done.stdout + done.stderr).splitlines() if len(line.split()) == 2)
    assert int(counts["train"]) == total(forecast(MINI)).trainings


def test_what_has_finished_is_not_counted_again(here):
    run = trainings(MINI)["toy-qwen3/grpo/G2/default/seed0"]
    finish(run, 20.0)
    main = by_name(forecast(MINI))["main"]
    assert (main.trainings, main.finished, len(main.to_train)) == (30, 1, 29)
    changed = studies.changed(MINI, {"training": {"learning_rate": 1e-4}})
    assert by_name(forecast(changed))["main"].finished == 0
    finish(run, 20.0, status="failed")
    assert by_name(forecast(MINI))["main"].finished == 0


def times_with(**seconds):
    """The time of each run once some, by method, have been measured at G=2 and seed 0."""
    known = trainings(MINI)
    for method, took in seconds.items():
        finish(known[f"toy-qwen3/{method}/G2/default/seed0"], took)
    return {job.name: job.time for row in forecast(MINI) for job in row.jobs}


def test_measured_times_stand_for_their_cell_and_for_what_is_the_same_work(here):
    finish(trainings(MINI)["toy-qwen3/grpo/G2/default/seed1"], 30.0)
    times = times_with(grpo=20.0)
    assert times["toy-qwen3/grpo/G2/default/seed2"] == Estimate(25.0, "measured")
    assert times["toy-qwen3/dapo/G2/default/seed0"] == Estimate(25.0, "like measured")
    assert times["toy-qwen3/grpo/G2/composite/seed0"] == Estimate(25.0, "like measured")
    for other in ("mc-grpo/G2/default", "grpo/G4/default", "grpo/G2/best-on-test"):  # rollouts, G, evaluations
        assert times[f"toy-qwen3/{other}/seed0"] is None


def test_its_own_times_go_before_those_of_others(here):
    times = times_with(grpo=20.0, dapo=50.0)
    assert times["toy-qwen3/dapo/G2/default/seed1"] == Estimate(50.0, "measured")
    assert times["toy-qwen3/dr-grpo/G2/default/seed1"] == Estimate(35.0, "like measured")


def test_a_run_of_other_steps_lends_its_seconds_a_step(here):
    variants = {**MINI["variants"], "longer": {"training": {"max_steps": 400}}}
    experiments = {"main": {**MINI["experiments"]["main"], "variants": ["default", "longer"]}}
    config = {**MINI, "variants": variants, "experiments": experiments}
    finish(trainings(config)["toy-qwen3/grpo/G2/default/seed0"], 20.0)
    times = {job.name: job.time for row in forecast(config) for job in row.jobs}
    assert times["toy-qwen3/grpo/G2/longer/seed0"] == Estimate(200.0, "like measured")


def offline(config):
    """What is known of a study when the hub does not answer."""
    everything = {name: Model() for name in config["models"]}
    return sizes_of.Sizes(everything, {name: {} for name in config["datasets"]})


def test_the_papers_times_are_those_of_its_own_settings(here):
    found = rows(PAPER, offline(PAPER))
    times = {job.name: job.time for row in found for job in row.jobs}
    assert times["qwen3-1.7b-gsm8k/grpo/G2/default/seed4"] == Estimate(1316.0, "published")
    assert times["qwen2.5-7b-math/mc-grpo/G8/default/seed0"] == Estimate(27700.0, "published")
    assert times["qwen3-1.7b-gsm8k/dapo/G2/default/seed0"] == Estimate(1316.0, "like published")
    assert times["qwen3-1.7b-gsm8k/grpo-plus1/G2/default/seed0"] == Estimate(1521.0, "like published")
    assert times["qwen3-1.7b-gsm8k/grpo/G2/released/seed0"] is None
    assert times["qwen3-1.7b-gsm8k/grpo/G4/update-matched/seed0"] is None


@pytest.mark.parametrize(
    "change",
    [{"gpus": 4}, {"training": {"max_completion_length": 512}}, {"training": {"max_steps": 100}}],
)
def test_another_study_has_not_the_papers_times(here, change):
    change = studies.changed(change, {"settings": {name: change for name in PAPER["settings"] if "training" in change}})
    config = studies.changed(PAPER, change)
    assert not any(job.time for row in rows(config, offline(config)) for job in row.jobs)


def test_measured_times_go_before_published_ones(here):
    run = trainings(PAPER)["qwen3-1.7b-gsm8k/grpo/G2/default/seed0"]
    finish(run, 900.0)
    times = {job.name: job.time for row in rows(PAPER, offline(PAPER)) for job in row.jobs}
    assert times["qwen3-1.7b-gsm8k/grpo/G2/default/seed1"] == Estimate(900.0, "measured")
    assert times["qwen3-1.7b-gsm8k/dapo/G2/default/seed1"] == Estimate(900.0, "like measured")


def test_what_is_not_known_is_no_zero(here):
    whole = total(rows(PAPER, offline(PAPER)))
    assert whole.steps is None and whole.disk is None
    assert whole.sources["unknown"] == sum(job.time is None for job in whole.to_train) > 0


def test_wall_clock_is_that_of_the_longest_lane():
    def job(seconds):
        return Job(str(seconds), 1, seconds and Estimate(seconds, "measured"), 0)

    row = Row("main", 5, 0, 0, [job(each) for each in (3.0, 7.0, 5.0, 4.0, None)])
    assert wall_seconds(row, 1) == 19.0
    assert wall_seconds(row, 2) == 10.0  # 7 + 3, 5 + 4
    assert wall_seconds(row, 9) == 7.0


@pytest.mark.parametrize(("training", "drawn"), [({}, 12), ({"extra_rollouts": 2}, 6), ({"extra_rollouts": 0}, 4)])
def test_rollouts_drawn_are_those_of_the_estimator_or_of_the_run(training, drawn):
    run = trainings(MINI)["toy-qwen3/grpo/G4/default/seed0"]
    run = replace(run, estimator="pods", training=run.training | training)
    assert batches(run, 0, 100).drawn == drawn


def test_the_batch_arithmetic_of_the_paper():
    run = trainings(PAPER)["qwen3-1.7b-gsm8k/mc-grpo/G4/default/seed0"]
    found = batches(run, 2, 7473)
    assert (found.processes, found.rows, found.accumulation, found.drawn) == (2, 16, 1, 5)
    assert found.prompts == found.prompts_at_once == 8
    assert found.steps == 7473 // 8 * 2  # two iterations over each batch
    assert batches(run, 2, None).steps is None and batches(run, 2, 7).steps == 0


EPOCHS = {"num_train_epochs": 1, "max_completion_length": 4, "beta": 0.0, "learning_rate": 1e-5}


@pytest.mark.slow
@pytest.mark.parametrize(
    "training",
    [
        {"per_device_train_batch_size": 4},
        {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3, "num_iterations": 2},
        {"per_device_train_batch_size": 2, "steps_per_generation": 3, "gradient_accumulation_steps": 2},
        {"per_device_train_batch_size": 4, "num_train_epochs": 1.5},
        {"per_device_train_batch_size": 4, "max_steps": 2},
    ],
    ids=lambda training: "-".join(map(str, training.values())),
)
def test_as_many_steps_as_a_real_training_takes(toy, tmp_path, training):
    from mcgrpo.train.job import Job, train

    run = replace(runs.RUN, num_generations=2, training={**EPOCHS, **training})
    train(Job(run, toy / "model", toy / "data.jsonl", tmp_path / "run", tmp_path / "weights"))
    taken = json.loads((tmp_path / "run/run.json").read_text())["outcome"]["steps"]
    assert batches(run, 0, 17).steps == taken


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A random model, and 17 questions to train it on: no batch size divides them."""
    from mcgrpo.data.toy.models import build
    from mcgrpo.data.toy.task import examples

    folder = tmp_path_factory.mktemp("toy")
    build(TINY, folder / "model")
    write_jsonl(folder / "data.jsonl", examples("two-step", "train", 17, 0))
    return folder


@pytest.mark.parametrize("spec", [TINY, {"architecture": "llama", "heads": 2, "layers": 3, "tokenizer": "bytes"}])
def test_a_toy_has_the_parameters_that_it_is_built_with(tmp_path, spec):
    from mcgrpo.data.toy.models import create

    model, tokenizer = create(spec)
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    assert VOCABULARIES[spec.get("tokenizer", "word")] == len(tokenizer)
    assert of_toy(spec).parameters == model.num_parameters()
    assert of_toy(spec) == of_folder(tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1


def test_a_folder_that_holds_no_model_tells_nothing(tmp_path):
    assert of_folder(tmp_path) == Model()
    (tmp_path / "config.json").write_text('{"text_config": {"vocab_size": 9}}')
    assert of_folder(tmp_path) == Model(vocabulary=9)


def memory_of(gpus=2, **training):
    run = replace(runs.RUN, training={"per_device_train_batch_size": 4, "max_completion_length": 100, **training})
    return memory(run, Model(1000, 10, 3, 50), batches(run, gpus, None))


def test_memory_by_hand():
    assert memory_of(gpus=1).state == 16 * 1000
    assert memory_of().state == 20 * 1000  # DDP's buckets
    assert memory_of(gpus=1, beta=0.04).state == 20 * 1000
    assert memory_of(sharding="fsdp", beta=0.04).state == 20 * 1000 / 2
    assert memory_of(sharding="zero3", beta=0.04).state == 22 * 1000 / 2
    assert memory_of(gpus=1, lora={"r": 1}, beta=0.04).state == 4 * 1000 + 16 * 200
    logits, inputs = 3 * 4 * 4 * 100 * 50, 4 * 4 * 612 * 10 * 3
    assert memory_of().activations == logits + 16 * inputs
    assert memory_of(bf16=True, gradient_checkpointing=True).activations == (logits + inputs) / 2


def test_vllm_takes_its_share_of_the_whole_device():
    shared = memory_of(use_vllm=True, vllm_mode="colocate", vllm_gpu_memory_utilization=0.5)
    assert shared.smallest_device == 2 * (shared.state + shared.activations)
    assert memory_of(use_vllm=True, vllm_mode="server").vllm_share == memory_of().vllm_share == 0


def test_a_model_whose_size_is_not_known_takes_nothing_by_mistake():
    run = trainings(PAPER)["qwen3-1.7b-gsm8k/grpo/G2/default/seed0"]
    assert while_training(run, offline(PAPER)) is None
    assert memory(run, Model(), batches(run, 2, None)).state == 0 < GIB


def test_disk_counts_the_checkpoints_of_a_training():
    run, known = trainings(MINI)["toy-qwen3/grpo/G2/default/seed0"], sizes(MINI)
    parameters = known.models["toy-qwen3"].parameters
    for training, checkpoints in (
        ({}, 2 * 12),
        ({"select_checkpoint": "best-on-test"}, 3 * 12),
        ({"sharding": "fsdp"}, 2 * 16),
    ):
        changed = replace(run, training=run.training | training)
        assert while_training(changed, known) == (checkpoints + 4) * parameters


def test_disk_counts_kept_weights_and_completions(here):
    entry = planned(MINI)["toy-qwen3/grpo/G2/default/seed0"]
    known = sizes(MINI)
    lean = {**MINI, "keep_models": False}
    assert kept(MINI, entry, 40, known) - kept(lean, entry, 40, known) == 4 * known.models["toy-qwen3"].parameters
    texts = kept(lean, entry, 0, known)
    assert texts == 2 * 512 * 3 * (400 + 4 * 40 + 120)  # both benchmarks: 512 problems, a greedy and two samples


def test_disk_counts_what_steps_take_in_mlflows_store(here):
    entry, known = planned(MINI)["toy-qwen3/grpo/G2/default/seed0"], sizes(MINI)
    tracked, untracked, served = ({**MINI, "tracking_uri": uri} for uri in ("sqlite:///mlflow.db", None, "http://host"))
    assert kept(tracked, entry, 40, known) == kept(MINI, entry, 40, known)
    assert kept(tracked, entry, 40, known) - kept(untracked, entry, 40, known) == 40 * STORE_STEP_BYTES
    assert kept(served, entry, 40, known) == kept(untracked, entry, 40, known)
    assert len(STEP_METRICS) * METRIC_BYTES == STORE_STEP_BYTES


def plan(*arguments, cwd, environment=None):
    command = [sys.executable, "-m", "mcgrpo.cli", "plan", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


def test_the_command_says_it_for_people_and_machines(here):
    study = ROOT / "config/mini.yaml"
    finish(trainings(MINI)["toy-qwen3/grpo/G2/default/seed0"], 36.0)
    text = plan(study, "--cores", "2", cwd=here)
    assert text.returncode == 0, text.stderr
    assert "core-hours" in text.stdout and "Wall clock of the trainings, 2 side by side: " in text.stdout
    records = json.loads(plan(study, "--json", cwd=here).stdout)
    assert records[-1]["experiment"] == "total" and records[-1]["trainings"] == len(trainings(MINI))
    assert records[0]["times"] == {"measured": 4, "unknown": 25} and records[0]["device_hours"] == 4 * 36 / 3600
    table = list(csv.DictReader(io.StringIO(plan(study, "--csv", cwd=here).stdout)))
    assert [row["experiment"] for row in table] == [record["experiment"] for record in records]
    assert [int(row["to_train"]) for row in table] == [record["to_train"] for record in records]


def test_a_mistake_is_one_line(here):
    done = plan(ROOT / "config/none.yaml", cwd=here)
    assert done.returncode == 1 and done.stderr == f"error: {ROOT / 'config/none.yaml'}: no such file\n"
    short = plan(ROOT / "config/config.yaml", "--gpus", "1", cwd=here)
    assert short.returncode == 1 and short.stderr == "error: --gpus 1: one training takes 2\n"


def test_what_is_not_here_is_asked_of_the_hub(here, monkeypatch):
    config = yaml.safe_load(yaml.safe_dump(PAPER))
    config["settings"] = {"qwen3-1.7b-gsm8k": config["settings"]["qwen3-1.7b-gsm8k"]}
    config["experiments"] = {"main": {"settings": ["qwen3-1.7b-gsm8k"], "methods": ["grpo"], "num_generations": [2]}}
    config["variants"], config["study"] = {}, "asked"
    Path("study.yaml").write_text(yaml.safe_dump(config))
    gsm8k = {"config_name": "main", "splits": [{"name": "train", "num_examples": 7473}]}
    model = {"safetensors": {"parameters": {"BF16": 10**9}, "total": 10**9}}
    repositories = {
        "models/Qwen/Qwen3-1.7B": {**model, "siblings": [{"rfilename": "model.safetensors", "size": 2 * 10**9}]},
        "datasets/openai/gsm8k": {"cardData": {"dataset_info": [{"config_name": "socratic"}, gsm8k]}},
    }
    with fake_hub.serving(repositories) as (environment, _):
        code = "from mcgrpo.study import read as study_file; from mcgrpo.commands.forecast.sizes import sizes; "
        code += "k = sizes(study_file.read(['study.yaml'])); print(k.models['qwen3-1.7b'].parameters, k.rows['gsm8k'])"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment_of(environment, here)
        )
        table = plan("study.yaml", "--json", cwd=here, environment=environment_of(environment, here))
    assert done.stdout.split(maxsplit=1) == ["1000000000", "{'train': 7473}\n"], done.stderr
    assert json.loads(table.stdout)[-1]["steps"] == 5 * (7473 // 16) * 2


def environment_of(hub, folder):
    return {**os.environ, **hub, "HF_HOME": str(folder / "hf")}


def test_nothing_is_to_be_downloaded_for_toys(here):
    assert to_download(sizes(MINI)) == 0
