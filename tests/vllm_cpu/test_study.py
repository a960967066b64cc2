"""A study of a few steps whose every completion is drawn by a real vLLM, from data to tables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from studies import ROOT, small

STOP = [";", "="]
VLLM = {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": 128, "stop": STOP}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the study ran."""
    folder = tmp_path_factory.mktemp("study")
    main = {"methods": ["mc-grpo"], "num_generations": [2], "seeds": [0]}
    config = small({"main": main}, study="vllm", reports="reports", preload=False, variants={})
    config["training"] |= {"max_steps": 2, **VLLM}
    config["evaluation"]["backend"] = "vllm"
    (folder / "study.yaml").write_text(yaml.safe_dump(config))
    bin_first = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder]
    options = ["--cores", "2", "--configfile", folder / "study.yaml", "--workflow-profile", ROOT / "profiles/default"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, env=bin_first)
    assert done.returncode == 0, done.stderr[-5000:]
    return folder


def test_rollouts_of_training_are_of_vllm(folder):
    runs = sorted((folder / "results/vllm/runs").rglob("run.json"))
    trained = [json.loads(path.read_text()) for path in runs]
    assert "mc-grpo" in {run["method"] for run in trained}
    for path, run in zip(runs, trained, strict=True):
        assert run["outcome"]["status"] == "finished"
        steps = [json.loads(line) for line in path.with_name("metrics.jsonl").read_text().splitlines()]
        assert all(step["sampling/sampling_logp_difference/max"] < 1e-3 for step in steps)


def test_rollouts_of_training_end_at_a_stop_string(folder):
    paths = (folder / "results/vllm/runs").rglob("rollouts.jsonl")
    texts = [json.loads(line)["completion"] for path in paths for line in path.read_text().splitlines()]
    stopped = [text for text in texts if any(stop in text for stop in STOP)]
    assert stopped and all(sum(map(text.count, STOP)) == 1 and text.endswith(tuple(STOP)) for text in stopped)


def test_completions_of_the_evaluation_are_of_vllm_and_reach_the_tables(folder):
    logs = [path.read_text() for path in (folder / "logs").rglob("*") if path.is_file()]
    assert sum("drawing completions with vllm" in log for log in logs) == 2  # untrained, and trained
    assert "mc-grpo" in set(pd.read_csv(folder / "results/vllm/summary.csv")["method"])
    assert (folder / "reports/tables.tex").is_file()
