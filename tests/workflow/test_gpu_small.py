"""config/gpu-small.yaml, with a smaller model and fewer steps and methods, on two pretended GPUs: the CPU computes."""

import json
import re

import pytest
from studies import load

CUT_DOWN = """
tracking_uri: null
models:
  small-qwen3:
    toy: {hidden_size: 64, layers: 1, heads: 2, intermediate_size: 64}
    warm_start: {steps: 40, batch_size: 4, until_solved: 0.0}
datasets: {two-step: {splits: {warm: {rows: 50}, train: {rows: 32}, test: {rows: 8}}}}
training: {max_steps: 2}
seeds: [0]
experiments: {main: {methods: [grpo, mc-grpo, grpo-plus1], num_generations: [2]}}
"""


@pytest.mark.slow
def test_it_runs_from_its_warm_start_to_its_report(empty, monkeypatch):
    """Its trainings could start at once: each takes a GPU, though Snakemake counts none."""
    monkeypatch.setenv("MCGRPO_DEVICES", "a,b")
    monkeypatch.setenv("MCGRPO_LOCKS", str(empty.folder / "locks"))
    empty.of(load("gpu-small")).changed(CUT_DOWN).made("reports/gpu-small/report.html", "--cores", "4")
    folder = empty.folder
    assert "held-out problems solved" in (folder / "logs/gpu-small/warm_start/small-qwen3.log").read_text()
    for method in ("grpo", "mc-grpo", "grpo-plus1"):
        run = f"small-qwen3/{method}/G2/default/seed0"
        assert re.search("takes [ab] ", (folder / f"logs/gpu-small/train/{run}.log").read_text())
        record = json.loads((folder / f"results/gpu-small/runs/{run}/run.json").read_text())
        assert record["outcome"]["status"] == "finished" and record["training"]["bf16"]
    assert (folder / "reports/gpu-small/report.html").is_file() and (folder / "reports/gpu-small/tables.tex").is_file()
