"""Trainings with a vLLM in their process, each started as the workflow starts it, at the same moment on one machine."""

import json
import os
import subprocess
import sys
from dataclasses import asdict

from training_jobs import changed, make_inputs, outcome


def test_trainings_that_start_at_once_do_not_meet_on_a_port(tmp_path):
    """TRL takes 29500 if nothing listens there yet, and listens seconds later: the second training died."""
    inputs = make_inputs(tmp_path)
    run = changed(use_vllm=True, vllm_mode="colocate", vllm_max_model_length=128, max_steps=1)
    environment = os.environ | {"MCGRPO_LOCKS": str(tmp_path / "locks")}
    trainings = []
    for name in "ab":
        options = {"run": json.dumps(asdict(run)), "model": inputs / "model", "data": inputs / "data.jsonl"}
        options |= {"output": tmp_path / name, "weights": tmp_path / f"weights-{name}"}
        command = [
            sys.executable,
            "-m",
            "mcgrpo.launch",
            "mcgrpo.train",
            *(f"--{key}={options[key]}" for key in options),
        ]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        trainings.append(subprocess.Popen(command, env=environment, **pipes))
    said = [training.communicate(timeout=900)[0] for training in trainings]
    assert [training.returncode for training in trainings] == [0, 0], [text[-2000:] for text in said]
    assert {outcome(tmp_path / name)["rollouts"] for name in "ab"} == {"vllm-colocate"}
