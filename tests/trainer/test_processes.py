"""Two processes against one: the same prompts, rollouts and rewards make the same updates.

The processes are real ones, of torchrun's agent with gloo; only their completions are scripted (`support/scripted.py`).
Their sums have another order, and every processor rounds them in its own way. No test rests on the largest difference
of a weight: where a gradient is near Adam's epsilon (1e-8), Adam turns its rounding into an update of any size.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import forked
import pytest
import scripted
import torch
from device import ON_GPU
from safetensors.torch import load_file
from training_jobs import untie

from mcgrpo.data.toy.examples import examples
from mcgrpo.data.toy.models import build
from mcgrpo.files import write_jsonl
from mcgrpo.launch import preload

METHODS = {
    "grpo": ("grpo", "mean-std"),
    "mc-grpo": ("grpo", "median-mad"),
    "mc-dapo": ("dapo", "median-mad"),
    "mc-dr-grpo": ("dr_grpo", "median"),
}
TRAINING = {
    "max_steps": 3,
    "max_completion_length": 24,
    "learning_rate": 1e-3,
    "beta": 0.04,
    "gradient_accumulation_steps": 2,
    "lr_scheduler_type": "constant",
}
G = 4
ROWS = 16  # of an optimizer step, over all processes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    spec = {"architecture": "qwen3", "hidden_size": 64, "heads": 2, "layers": 2, "intermediate_size": 64}
    build(spec, folder / "model")
    untie(folder / "model", folder / "untied/model")
    for each in (folder, folder / "untied"):
        write_jsonl(each / "data.jsonl", examples("two-step", "train", 24, 0))
    return folder


def case(inputs, folder, method, processes, gpus=int(ON_GPU), num_generations=G, **training):
    loss_type, estimator = METHODS[method]
    rows = ROWS // processes // TRAINING["gradient_accumulation_steps"]
    if ON_GPU and processes > 1:
        training["ddp_backend"] = "gloo"  # NCCL takes no two processes on one GPU
    return {
        "folder": str(folder),
        "model": str(inputs / "model"),
        "data": str(inputs / "data.jsonl"),
        "loss_type": loss_type,
        "estimator": estimator,
        "num_generations": num_generations,
        "gpus": gpus,
        "training": {**TRAINING, "per_device_train_batch_size": rows, **training},
    }


def alone(cases):
    """Run cases one after the other in this process."""
    for each in cases:
        scripted.record(each)


ON_CPU = {"CUDA_VISIBLE_DEVICES": ""}


def launch(cases, **settings):
    """Run cases one after the other in two processes, with these environment variables."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if ON_GPU:
        job = ["scripted"]
    else:  # forked from a process that has imported TRL, as a study's jobs are on a CPU
        job = ["preloaded_rank", "scripted"]
        environment |= ON_CPU | {preload.SOCKET: forked.server()}
    done = subprocess.run(
        [*command, *job, json.dumps(cases)], capture_output=True, text=True, env=environment | settings
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def seen(folder, processes):
    return [torch.load(Path(folder) / f"rank{rank}.pt") for rank in range(processes)]


def rows_by_step(ranks):
    """Step -> the rows of its update, over all processes and micro-batches, sorted."""
    found = {}
    for rank in ranks:
        for update in rank["updates"]:
            found.setdefault(update["step"], []).extend(update["rows"])
    return {step: sorted(rows) for step, rows in found.items()}


def losses_by_step(ranks):
    """Step -> its loss: the sum over micro-batches, the mean over processes."""
    found = Counter()
    for rank in ranks:
        for update in rank["updates"]:
            found[update["step"]] += update["loss"] / len(ranks)
    return dict(found)


def weights(folder):
    return load_file(Path(folder) / "model.safetensors")


def apart(inputs, one, other):
    """L2 norm of the difference between the ends of two trainings, as a share of the way to the first."""
    start, one, other = weights(inputs / "model"), weights(one / "weights"), weights(other / "weights")
    assert start.keys() == one.keys() == other.keys()
    way, difference = (torch.cat([(one[key] - to[key]).flatten() for key in one]) for to in (start, other))
    assert way.abs().max() > 1e-3
    return float(difference.norm() / way.norm())


SAME_END = 1e-3
SAME_START, SAME_STEP = 1e-5, 1e-4
"""Of gradients: at the first step, from the same weights; and later."""


def assert_same_updates(inputs, one, other):
    """The gradients of all steps, as shares of their norms, and the weights at the end."""
    pairs = zip(seen(one, 1)[0]["gradients"], seen(other, 1)[0]["gradients"], strict=True)
    first, *later = (float((a - b).norm() / a.norm()) for a, b in pairs)
    assert first < SAME_START and max(later) < SAME_STEP
    assert apart(inputs, one, other) < SAME_END


CASES = {
    **{method: (method, {}) for method in METHODS},
    "mc-dapo-reused": ("mc-dapo", {"num_iterations": 2, "max_steps": 4}),
    "mc-grpo-reused-flipped": ("mc-grpo", {"num_iterations": 2, "max_steps": 4, "advantage_flip_rate": 0.5}),
    "mc-grpo-lora": ("mc-grpo", {"lora": {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}}),
}
STRADDLING = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 1}


COMPACT = {
    "mc-grpo": ("mc-grpo", {}),
    "mc-dapo-reused": ("mc-dapo", {"num_iterations": 2, "max_steps": 4}),
    "mc-dr-grpo-finely-divided": ("mc-dr-grpo", {"gradient_accumulation_steps": 4}),
}


def compact_case(inputs, folder, name, processes):
    """One process computes every row; two leave out what adds nothing."""
    method, training = COMPACT[name]
    settings = {"beta": 0.0, "compact_updates": processes == 2, **training}
    accumulated = settings.get("gradient_accumulation_steps", TRAINING["gradient_accumulation_steps"])
    settings["per_device_train_batch_size"] = ROWS // processes // accumulated
    return case(inputs, folder / f"{processes}/compact/{name}", method, processes, **settings)


@pytest.fixture(scope="module")
def runs(inputs, tmp_path_factory):
    """Folder of the trainings PROCESSES/CASE and PROCESSES/compact/CASE: every case in one process, and in two."""
    folder = tmp_path_factory.mktemp("runs")
    one, two = ([compact_case(inputs, folder, name, n) for name in COMPACT] for n in (1, 2))
    for n, cases in ((1, one), (2, two)):
        cases += [case(inputs, folder / f"{n}/{name}", CASES[name][0], n, **CASES[name][1]) for name in CASES]
    two.append(case(inputs, folder / "2/straddling", "mc-grpo", 2, num_generations=8, **STRADDLING))
    one.append(case(inputs / "untied", folder / "1/untied", "mc-grpo", 1))
    alone(one)
    launch(two)
    return folder


@pytest.mark.parametrize("name", CASES)
class TestTwoAreOne:
    def test_the_same_rows_are_kept_with_the_same_advantages(self, runs, name):
        one, two = (rows_by_step(seen(runs / f"{n}/{name}", n)) for n in (1, 2))
        assert [len(rows) for rows in one.values()] == [ROWS] * len(one)
        assert any(advantage for rows in one.values() for *_, advantage in rows)
        assert one == two

    def test_losses_gradients_and_weights_are_the_same(self, runs, name, inputs):
        losses, of_two = (losses_by_step(seen(runs / f"{n}/{name}", n)) for n in (1, 2))
        assert losses == pytest.approx(of_two, rel=1e-4, abs=1e-5)
        assert_same_updates(inputs, runs / f"1/{name}", runs / f"2/{name}")


@pytest.mark.parametrize("name", COMPACT)
class TestCompact:
    """Rows without an advantage are left out on two processes that have unequal numbers of them."""

    def test_all_others_are_computed(self, runs, name):
        one, two = (rows_by_step(seen(runs / f"{n}/compact/{name}", n)) for n in (1, 2))
        signed = {step: [row for row in rows if row[2]] for step, rows in one.items()}
        assert signed == {step: [row for row in rows if row[2]] for step, rows in two.items()}
        assert sum(map(len, two.values())) < sum(map(len, one.values()))

    def test_processes_have_unequal_numbers_and_compute_as_many_rows(self, runs, name):
        ranks = seen(runs / f"2/compact/{name}", 2)
        signed = [[sum(bool(row[2]) for row in update["rows"]) for update in rank["updates"]] for rank in ranks]
        assert signed[0] != signed[1]
        computed = [[len(update["rows"]) for update in rank["updates"]] for rank in ranks]
        assert computed[0] == computed[1]

    def test_the_updates_are_the_same(self, runs, inputs, name):
        assert_same_updates(inputs, runs / f"1/compact/{name}", runs / f"2/compact/{name}")


def test_micro_batches_that_nothing_is_left_for_are_not_computed(runs):
    for rank in seen(runs / "2/compact/mc-dr-grpo-finely-divided", 2):
        assert 0 in [len(update["rows"]) for update in rank["updates"]]


def test_a_batch_that_would_straddle_is_refused_on_every_process(runs):
    """8 rows over both processes, which G divides, and which TRL takes."""
    for rank in seen(runs / "2/straddling", 2):
        assert "num_generations=8 does not divide the 4 rows that each process generates at a time" in rank["refused"]


IN_BF16 = {"bf16": True, "num_iterations": 2, "max_steps": 2, "learning_rate": 1e-6}
SHARDED = {
    "plain": {"gradient_checkpointing": True},
    "untied": {},
    "lora": {"lora": CASES["mc-grpo-lora"][1]["lora"]},
    "bf16": IN_BF16,
    "untied-bf16": IN_BF16,
    "compact": {"beta": 0.0, "gradient_accumulation_steps": 4, "per_device_train_batch_size": 2},
}


def start_of(inputs, name):
    """Untied weights are divided otherwise: the embedding is a unit of its own."""
    return inputs / "untied" if name.startswith("untied") else inputs


@pytest.fixture(scope="module")
def sharded(inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fsdp")
    launch(
        [
            case(start_of(inputs, name), folder / name, "mc-grpo", 2, gpus=2, sharding="fsdp", **training)
            for name, training in SHARDED.items()
        ],
        **ON_CPU,
        MCGRPO_DEVICES="a,b",
    )
    return folder


class TestSharded:
    """The weights divided between two processes, gathered layer by layer."""

    @pytest.mark.parametrize("name", SHARDED)
    def test_every_process_holds_a_part(self, sharded, name):
        parts = [rank["held"] for rank in seen(sharded / name, 2)]
        assert all(0.4 < part < 0.65 for part in parts) and sum(parts) >= 1

    def test_gradients_that_accumulate_are_divided_after_each_micro_batch(self, sharded):
        """A weight that a process holds a part of has a gradient only once that is divided, too."""
        for rank in seen(sharded / "plain", 2):
            assert rank["between"] == [1.0] * TRAINING["max_steps"]

    @pytest.mark.parametrize(("name", "whole"), [("plain", "mc-grpo"), ("untied", "untied"), ("lora", "mc-grpo-lora")])
    def test_the_weights_are_those_of_one_process(self, sharded, runs, inputs, name, whole):
        assert apart(start_of(inputs, name), runs / "1" / whole, sharded / name) < SAME_END

    def test_an_output_layer_of_its_own_is_saved(self, sharded):
        assert weights(sharded / "untied/weights").keys() - weights(sharded / "plain/weights").keys() == {
            "lm_head.weight"
        }

    def test_compact_updates_are_those_of_all_rows_of_one_process(self, sharded, runs, inputs):
        assert apart(inputs, runs / "1/compact/mc-grpo", sharded / "compact") < SAME_END

    def test_small_steps_in_bf16_move_weights_that_are_saved_in_fp32(self, sharded, inputs):
        start = weights(inputs / "model")
        found = weights(sharded / "bf16/weights")
        assert {value.dtype for value in found.values()} == {torch.float32}
        moved = torch.cat([(found[key] - start[key]).flatten() for key in found])
        assert (moved != 0).float().mean() > 0.9 and moved.abs().max() < 1e-5

    @pytest.mark.parametrize("name", ["bf16", "untied-bf16"])
    def test_log_probabilities_in_bf16_are_not_rounded(self, sharded, name):
        old = torch.cat([update["old"].flatten() for update in seen(sharded / name, 2)[0]["updates"]])
        assert (old[old != 0] != old[old != 0].bfloat16()).float().mean() > 0.9
