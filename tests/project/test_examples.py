"""The scripts of examples/ and of the README train, from folders in place of the hub."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from mcgrpo.data.toy.models import build
from mcgrpo.estimators import signal

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(command, folder):
    """A script, without the hub, in a folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, *map(str, command)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def test_gsm8k(tmp_path):
    build({"architecture": "qwen3", "layers": 1, "tokenizer": "bytes"}, tmp_path / "model")
    places = ["--data", ROOT / "tests/data/gsm8k", "--model", tmp_path / "model", "--output", tmp_path / "out"]
    done = run([ROOT / "examples/gsm8k.py", *places, "--steps", "2", "--completion-length", "8"], tmp_path)
    assert "'drawn/reward'" in done.stdout
    weights = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    assert sum(each.numel() for each in weights.parameters()) > 0


def test_the_readme_s_script_trains_and_prints_what_is_shown(tmp_path):
    """With a small model on a CPU."""
    build({"architecture": "qwen3", "layers": 1, "tokenizer": "bytes"}, tmp_path / "model")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,), (shown,) = (re.findall(rf"^```{kind}\n(.*?)^```$", page, re.M | re.S) for kind in ("python", "text"))
    code = code.replace("Qwen/Qwen3-1.7B", "model").replace("logging_steps=1", "logging_steps=1, use_cpu=True")
    (tmp_path / "script.py").write_text(code)
    done = run([tmp_path / "script.py"], tmp_path)
    names = re.findall(r"'([^']+)':", shown)
    first = next(line for line in done.stdout.splitlines() if "'drawn/reward'" in line)
    assert len(names) > 5 and [name for name in names if f"'{name}': '" not in first] == []


def test_curves(tmp_path):
    cut_down = ["--steps", 2, "--seeds", 1, "--prompts", 4, "--taught", 2]
    done = run([ROOT / "examples/curves.py", *cut_down], tmp_path)
    assert "GRPO, mean" in done.stdout and "MC-GRPO, median" in done.stdout
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_estimators_are_ranked_by_signal(tmp_path):
    (tmp_path / "rates.csv").write_text("pass_rate\n0.1\n0.5\n")
    done = run([ROOT / "examples/rank_estimators.py", "rates.csv", "--num-generations", "4"], tmp_path)
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " 4 " in line)
    ours = signal("median-mad", 4, [0, 1], [[0.9, 0.1], [0.5, 0.5]])
    assert float(rows["median-mad"].split()[2]) == pytest.approx(ours.per_rollout, rel=0.01)
    assert "2 prompts, mean pass rate 30.0%" in done.stdout and "james-stein" in done.stdout
