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
