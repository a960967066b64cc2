"""Two processes with gloo, each with a real vLLM, or with one between them."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("distributed.py")


def two_processes(folder, monkeypatch, **settings):
    """What each of two processes found."""
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, *launch, str(PROGRAM), str(folder), json.dumps({"max_steps": 2, **settings})]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


def test_each_process_draws_groups_of_its_own_with_a_seed_of_its_own(tmp_path, monkeypatch):
    first, second = two_processes(tmp_path / "a", monkeypatch, per_device_train_batch_size=4)
    for process in (first, second):
        assert process["synchronized"] and max(process["differences"]) < 1e-3
        assert [len(call) for call in process["drawn"][:2]] == [5, 5]
        assert all(len({tuple(ids) for ids in call}) == 1 for call in process["prompts"][:2])
    assert first["prompts"] != second["prompts"]
    assert first["same prompts"] != second["same prompts"]


def test_processes_that_share_an_engine_draw_the_same_and_keep_their_own(tmp_path, monkeypatch):
    first, second = two_processes(
        tmp_path / "a", monkeypatch, per_device_train_batch_size=4, vllm_tensor_parallel_size=2
    )
    assert first["drawn"] == second["drawn"]
    assert [len(call) for call in first["drawn"][:2]] == [10, 10]
    assert first["synchronized"] and second["synchronized"]


SHARDED = {"sharding": "fsdp", "gradient_checkpointing": True, "beta": 0.04, "num_iterations": 2, "max_steps": 6}


def test_weights_that_are_divided_reach_the_engine_of_each_process(tmp_path, monkeypatch):
    """As the paper's largest setting trains: FSDP2, a reference model, and two updates with what is drawn at a time.

    They are sent once more after completions of transformers, whose forward passes leave some weights whole.
    """
    found = two_processes(tmp_path / "a", monkeypatch, per_device_train_batch_size=4, learning_rate=0.05, **SHARDED)
    for process in found:
        assert process["held"] and process["synchronized"] and not process["synchronized before"]
        assert len(process["differences"]) == 3 and max(process["differences"]) < 1e-3
        first, second, *_ = process["kl"]
        assert first < 1e-6 < second  # the reference is the model that training starts from, on each process
        assert [len(call) for call in process["drawn"][:3]] == [5, 5, 5]
    assert found[0]["prompts"] != found[1]["prompts"]
