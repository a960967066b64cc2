import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
import runs

from mcgrpo.arguments import arguments_of
from mcgrpo.files import write_jsonl
from mcgrpo.records import Example
from mcgrpo.released import ReleasedConfig
from mcgrpo.toy.models import build
from mcgrpo.toy.task import examples
from mcgrpo.train import Job, train
from mcgrpo.trainer import MCGRPOConfig

RUN = replace(
    runs.RUN,
    num_generations=2,
    training={"per_device_train_batch_size": 4, "max_steps": 3, "max_completion_length": 8, "beta": 0.0},
)
BEST = {"select_checkpoint": "best-on-test", "eval_steps": 2}


def changed(**training):
    return replace(RUN, training={**RUN.training, **training})


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with a random model, and questions to train and to select on."""
    folder = tmp_path_factory.mktemp("inputs")
    build(
        {"architecture": "qwen3", "hidden_size": 32, "heads": 1, "layers": 1, "intermediate_size": 32}, folder / "model"
    )
    rows: list[Example] = [*examples("two-step", "train", 16, 0), *examples("two-step", "test", 8, 0)]
    write_jsonl(folder / "data.jsonl", rows)
    return folder


def job(inputs, folder, run):
    data = inputs / "data.jsonl"
    return Job(run, inputs / "model", data, folder / "run", folder / "weights", test=data)


def outcome(folder):
    return json.loads((folder / "run/run.json").read_text())["outcome"]


def steps(folder):
    return [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]


def test_a_fault_of_the_release_takes_its_trainer(tmp_path):
    assert type(arguments_of(RUN, tmp_path, 0)) is MCGRPOConfig
    mixed = arguments_of(changed(group_by="position"), tmp_path, 0)
    assert type(mixed) is ReleasedConfig and mixed.group_by == "position"


def test_no_checkpoint_is_chosen_unless_it_is_asked_for(tmp_path):
    plain, best = arguments_of(RUN, tmp_path, 0), arguments_of(changed(**BEST), tmp_path, 0)
    assert plain.eval_strategy == plain.save_strategy == "no" and not plain.load_best_model_at_end
    assert best.load_best_model_at_end and best.eval_steps == 2 and best.metric_for_best_model == "eval_reward"
    assert best.per_device_eval_batch_size == 4
    wide = arguments_of(changed(**BEST, per_device_eval_batch_size=8), tmp_path, 0)
    assert wide.per_device_eval_batch_size == 8


def test_the_best_checkpoint_is_what_is_saved_and_no_other_is_left(inputs, tmp_path):
    train(job(inputs, tmp_path, changed(**BEST)))
    assert outcome(tmp_path)["steps"] == 3 and outcome(tmp_path)["selected_step"] in (2, 3)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"run.json", "metrics.jsonl"}
    assert (tmp_path / "weights/model.safetensors").is_file()
    assert [row["step"] for row in steps(tmp_path)] == [1, 2, 3]
    assert all(row[f"seconds/{phase}"] > 0 for row in steps(tmp_path) for phase in ("generation", "update"))


def test_the_last_step_is_evaluated_too(inputs, tmp_path):
    train(job(inputs, tmp_path, changed(**BEST | {"eval_steps": 9})))
    assert outcome(tmp_path)["selected_step"] == 3


def test_the_phases_of_a_step_are_all_of_it(inputs, tmp_path):
    train(job(inputs, tmp_path, RUN))
    first, *_, last = steps(tmp_path)
    measured = sum(last[f"seconds/{phase}"] for phase in ("generation", "rewards", "logprobs", "update"))
    assert 0.5 * measured < (last["time"] - first["time"]) / 2 < 2 * measured + 0.05


@pytest.mark.slow
def test_two_processes_train_one_run(inputs, tmp_path):
    """As the workflow starts it on two GPUs, here with gloo: one record, one row a step, one set of weights."""
    options = {"model": inputs / "model", "data": inputs / "data.jsonl", "output": tmp_path / "run"}
    options |= {"run": json.dumps(asdict(RUN)), "weights": tmp_path / "weights"}
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--", "mcgrpo.train"]
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    done = subprocess.run([sys.executable, *launch, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert outcome(tmp_path)["status"] == "finished"
    assert [row["step"] for row in steps(tmp_path)] == [1, 2, 3]
    verdicts = ("correct", "equivalent", "wrong", "unparseable", "timeout", "error")
    for row in steps(tmp_path):  # TRL averages a metric over processes: each scored its own 2 prompts x 3 rollouts
        assert sum(row[f"verdicts/{verdict}"] for verdict in verdicts) == 6
    assert (tmp_path / "weights/tokenizer.json").is_file()


def test_as_many_processes_as_gpus(inputs, tmp_path):
    with pytest.raises(ValueError, match="2 GPUs are trained on by as many processes"):
        train(replace(job(inputs, tmp_path, changed(bf16=False)), gpus=2))
