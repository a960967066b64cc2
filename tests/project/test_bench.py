"""The benchmarks run, and what the one of training compares is what it says."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench import grading
from bench.training import __main__ as training


@pytest.mark.slow
def test_make_bench_cut_down(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench.training", "--quick", "--sizes", "2", "--output", str(tmp_path)])
    training.main()
    found = pd.read_csv(tmp_path / "training.csv").set_index(["contender", "share"])["zero"]
    assert {key: round(value, 6) for key, value in found.items()} == {
        ("trl", 0.2): 0.2, ("mean", 0.2): 0.2, ("mean", 0.6): 0.6, ("mc", 0.2): 0.6, ("mc", 0.6): 0.8,
    }  # fmt: skip
    assert "| 60%" in (tmp_path / "training.md").read_text()


@pytest.mark.slow
def test_make_bench_grading_cut_down(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(grading, "HAND_WRITTEN", grading.HAND_WRITTEN[:2])
    monkeypatch.setattr(sys, "argv", ["grading", "--blocks", "2", "--csv", str(tmp_path / "grading.csv")])
    grading.main()
    table = pd.read_csv(tmp_path / "grading.csv")
    assert table["completions"].tolist() == [16] * 3 and (table["seconds"] > 0).all()
