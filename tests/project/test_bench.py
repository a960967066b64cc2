"""The benchmarks run, and what the one of training compares is what it says."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench import grading
from bench.training import __main__ as training
from bench.training.task import reward_of


def test_the_share_of_groups_with_equal_rewards_is_what_was_asked_for():
    reward = reward_of(0.6, prompts_per_step=5)
    for drawn in (2, 3, 9):
        position = [place for place in range(5) for _ in range(drawn)]
        rewards = reward([[number] for number in range(5 * drawn)], position)
        groups = [set(rewards[start : start + drawn]) for start in range(0, 5 * drawn, drawn)]
        assert groups == [{0.0}] * 3 + [{0.0, 1.0}] * 2


def test_a_table_by_hand():
    times = {"trl": 2.0, "mean": 1.5, "mc": 1.0}
    rows = [
        {"round": number, "G": 2, "contender": name, "share": share, "seconds": (1 + number) * times[name], "zero": 0.6}
        for number in range(2)
        for name, share in training.TURNS
    ]
    (_, _, first, second) = training.as_markdown(pd.DataFrame(rows), 20_000_000, 128).splitlines()[2:]
    cells = [cell.strip() for cell in first.split("|")[1:-1]]
    assert cells == ["20%", "2", "3 s", "0.75 (0.75 to 0.75)", "60%", "0.50 (0.50 to 0.50)", "60%"]
    assert second.startswith("| 60%")


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
