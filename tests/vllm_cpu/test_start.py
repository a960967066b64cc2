"""How the command of an evaluation starts vLLM: a real process of it, in which calls of CUDA are watched."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from training_jobs import make_inputs

WATCH = Path(__file__).parents[1] / "support/cuda_watch"
SETTINGS = {"samples": 1, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 4, "batch_size": 8, "backend": "vllm"}
CODE = "import torch; print(torch.cuda.is_available())"


def watched(folder, *command):
    """What a process prints, and who in it asked CUDA for GPUs before vLLM was imported."""
    seen = folder / "seen"
    path = os.pathsep.join(filter(None, (str(WATCH), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"CUDA_WATCH": str(seen), "PYTHONPATH": path}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout, seen.read_text().splitlines() if seen.exists() else []


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return make_inputs(tmp_path_factory.mktemp("inputs"))


def test_nothing_asks_cuda_for_gpus_before_vllm_is_imported(inputs, tmp_path):
    """Else the engine that vLLM forks cannot use one: "Cannot re-initialize CUDA in forked subprocess"."""
    options = {"model": inputs / "model", "data": inputs / "data.jsonl", "prompt": "plain", "seed": 0}
    options |= {"settings": json.dumps(SETTINGS), "output": tmp_path / "completions.jsonl"}
    command = ["-m", "mcgrpo.launch", "mcgrpo.generate", *(f"--{name}={value}" for name, value in options.items())]
    said, seen = watched(tmp_path, *command)
    assert "drawing completions with vllm" in said and len(options["output"].read_text().splitlines()) == 16
    assert seen == []


def test_whoever_asks_is_seen(tmp_path):
    said, seen = watched(tmp_path, "-c", CODE)
    assert said == "False\n" and seen == ["torch.cuda.is_available of <string>:<module>"]
