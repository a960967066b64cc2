"""The scripts of examples/ train, from folders in place of the hub."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from mcgrpo.data.toy.models import build

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_gsm8k(tmp_path):
    build({"architecture": "qwen3", "layers": 1, "tokenizer": "bytes"}, tmp_path / "model")
    command = [sys.executable, ROOT / "examples/gsm8k.py", "--data", ROOT / "tests/data/gsm8k", "--steps", "2"]
    command += ["--model", tmp_path / "model", "--output", tmp_path / "out", "--completion-length", "8"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "'drawn/reward'" in done.stdout
    weights = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    assert sum(each.numel() for each in weights.parameters()) > 0
