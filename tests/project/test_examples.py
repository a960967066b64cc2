"""The scripts of examples/ and of the README train, from folders in place of the hub."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from mcgrpo.data.toy.models import build
from mcgrpo.estimators import signal
from mcgrpo.files import write_jsonl

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
    cut_down = ["--steps", "2", "--completion-length", "8", "--questions", "3"]
    done = run([ROOT / "examples/gsm8k.py", *places, *cut_down], tmp_path)
    assert done.stdout.count("'drawn/reward'") == 2
    assert re.findall(r"^(before|after) training: \d of 3 right", done.stdout, re.MULTILINE) == ["before", "after"]
    adapted = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    assert adapted.num_parameters() > plain.num_parameters()


def test_trls_script_with_the_imports_of_the_page_takes_our_arguments(tmp_path):
    """A bound that no advantage keeps shows that they reach the trainer."""
    build({"architecture": "qwen3", "layers": 1, "tokenizer": "bytes"}, tmp_path / "model")
    write_jsonl(tmp_path / "data/train.jsonl", [{"prompt": f"{number} + 1 ="} for number in range(4)])
    (tmp_path / "own_rewards.py").write_text(
        "def length(completions, **_):\n    return [len(set(each)) for each in completions]\n"
    )
    page = (ROOT / "docs/drop-in.md").read_text(encoding="utf-8")
    script = Path(find_spec("trl.scripts.grpo").origin).read_text(encoding="utf-8")
    (changes,) = re.findall(r"^```diff\n(.*?)^```$", page, re.M | re.S)
    for old, new in re.findall(r"^-(.*\n)((?:^\+.*\n)+)", changes, re.M):
        assert script.count(old) == 1
        script = script.replace(old, re.sub(r"^\+", "", new, flags=re.M))
    (tmp_path / "mc_grpo.py").write_text(script)
    shown = re.search(r"--estimator .*--compact_updates true", page)[0].split()
    shown[shown.index("--max_advantage") + 1] = "1e-3"
    options = (
        "--model_name_or_path model --dataset_name data --output_dir out --reward_funcs own_rewards.length "
        "--num_generations 2 --per_device_train_batch_size 4 --max_completion_length 8 --max_steps 1 --logging_steps 1 "
        "--use_cpu true --dtype float32 --report_to none --save_strategy no"
    )
    done = run(["mc_grpo.py", *options.split(), *shown], tmp_path)
    assert "'advantage/abs_max': '0.001'" in done.stdout and "'advantage/frac_clamped'" in done.stdout


def test_the_readme_s_script_trains_and_prints_what_is_shown(tmp_path):
    """With a small model on a CPU."""
    build({"architecture": "qwen3", "layers": 1, "tokenizer": "bytes"}, tmp_path / "model")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,), (shown,) = (re.findall(rf"^```{kind}\n(.*?)^```$", page, re.M | re.S) for kind in ("python", "text"))
    code = code.replace("Qwen/Qwen3-0.6B", "model").replace(
        "logging_steps=1", "logging_steps=1, use_cpu=True, bf16=False"
    )
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
