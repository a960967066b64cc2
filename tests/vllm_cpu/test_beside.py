"""A job beside a real vLLM server, which `mcgrpo.launch` starts and stops; and what a training lacks on a CPU."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from pretend_machine import gone, wait_until
from tiny_training import model_folder
from training_jobs import changed, make_inputs, outcome

HERE = Path(__file__).parent
SERVED = {"use_vllm": True, "vllm_mode": "server", "vllm_server_timeout": 900}


def start(folder, *job):
    """A job on one of two pretend GPUs, with a server on the other."""
    server = json.dumps({"model": str(model_folder()), "log": str(folder / "vllm.log"), "max_model_len": 64, "gpus": 1})
    command = [sys.executable, "-m", "mcgrpo.launch", "--gpus", "1", "--server", server, *map(str, job)]
    environment = {"MCGRPO_DEVICES": "a,b", "MCGRPO_LOCKS": str(folder / "locks"), "MCGRPO_PRELOAD": "off"}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    with (folder / "log").open("w") as log:
        return subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log)


@pytest.mark.parametrize(("number", "code"), [(None, 0), (signal.SIGTERM, -15), (signal.SIGKILL, -9)])
def test_a_job_draws_from_its_server_which_ends_with_it_however_that_ends(tmp_path, number, code):
    """By the seed, and with a noise of its own for each prompt."""
    file = tmp_path / "found.json"
    process = start(tmp_path, "served", file, 5 if number is None else 600)
    assert wait_until(lambda: file.is_file() or process.poll() is not None, 1800)
    assert file.is_file(), (tmp_path / "log").read_text() + (tmp_path / "vllm.log").read_text()[-3000:]
    processes = psutil.Process(process.pid).children(recursive=True)
    assert len(processes) >= 3  # what watches over the server, the server, its engine
    if number is not None:
        process.send_signal(number)
    assert process.wait(120) == code and gone(processes)
    found = json.loads(file.read_text())
    first, again, other = found["completions"]
    assert again == first != other
    assert len(first) == 9 and first[:3] != first[3:6] and len({tuple(ids) for ids in first[:3]}) > 1
    assert (found["devices"], found["workers"], found["engine"]["backend"]) == ("a", 1, "nccl")


def test_a_training_meets_its_server_and_says_that_weights_need_a_gpu(tmp_path):
    """As far as a CPU goes: TRL sends the weights by NCCL. The server has ended, and no model is left."""
    inputs, run = make_inputs(tmp_path), changed(**SERVED)
    options = {"run": json.dumps(asdict(run)), "model": inputs / "model", "data": inputs / "data.jsonl", "gpus": 1}
    options |= {"output": tmp_path / "run", "weights": tmp_path / "weights", "unfinished": tmp_path / "unfinished"}
    process = start(
        tmp_path, "mcgrpo.train", *(part for name, value in options.items() for part in (f"--{name}", value))
    )
    assert wait_until(lambda: process.poll() is not None or len(psutil.Process(process.pid).children(True)) >= 3)
    processes = psutil.Process(process.pid).children(recursive=True)
    assert process.wait(1800) == 1 and gone(processes)
    assert not (tmp_path / "weights").exists()
    assert "Weight synchronization runs on vLLM's NCCL" in outcome(tmp_path / "unfinished")["error"]
    assert "GET /health" in (tmp_path / "vllm.log").read_text()
