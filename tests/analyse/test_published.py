from collections import Counter
from pathlib import Path

import pytest
import yaml

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.published import PAPER_TABLES, as_cells, read_published
from mcgrpo.study.methods import METHODS

CONFIG = Path(__file__).parents[2] / "config"
FILE = CONFIG / "published.csv"
ROWS = read_published(FILE)


def accuracies(**where):
    rows = [row for row in ROWS if row.measure == "accuracy"]
    return [row for row in rows if all(getattr(row, name) == value for name, value in where.items())]


def cents(value):
    """A printed number as a whole number of hundredths."""
    return round(100 * value)


def test_every_table_has_all_its_numbers():
    assert Counter((row.table, row.measure) for row in ROWS) == {
        ("main", "accuracy"): 5 * 3 * 2,
        ("main", "seconds"): 5 * 3 * 2,
        ("dapo", "accuracy"): 5 * 3 * 2,
        ("drgrpo", "accuracy"): 5 * 3 * 2,
        ("ood", "accuracy"): 2 * 2 * 2,
        ("composite", "accuracy"): 3 * 2,
        ("control", "accuracy"): 3 * 3,
        ("text", "accuracy"): 3,
    }


def test_names_are_those_of_the_study():
    settings = yaml.safe_load((CONFIG / "config.yaml").read_text())["settings"]
    for row in ROWS:
        assert row.method in METHODS and row.table in PAPER_TABLES
        assert row.variant == ("composite" if row.table == "composite" else "default")
        assert (row.setting is None) == (row.table == "ood")
        if row.setting and row.measure == "accuracy":
            assert row.benchmark in settings[row.setting]["benchmarks"]["in"]
        elif row.measure == "seconds":
            assert row.benchmark == "train"


def test_a_gain_is_the_difference_of_its_accuracies():
    gains = [row for row in ROWS if row.gain is not None]
    assert len(gains) == 3 * 15 + 3
    for row in gains:
        place = {name: getattr(row, name) for name in ("table", "setting", "num_generations")}
        (baseline,) = accuracies(**place, method=METHODS[row.method].baseline)
        assert cents(row.value) - cents(baseline.value) == cents(row.gain), row


def test_as_cells_the_main_table_comes_first_and_differences_are_those_printed():
    cells = as_cells(ROWS)
    where = {"setting": "qwen3-1.7b-gsm8k", "variant": "default", "role": "in", "benchmark": "gsm8k"}
    key = CellKey(**where, measure="greedy", num_generations=2, method="mc-grpo")
    assert cells[key.baseline] == pytest.approx(0.7892)
    assert 100 * (cells[key._replace(variant="composite")] - cells[key]) == pytest.approx(84.14 - 83.54)
    ood = key._replace(setting="", role="out", benchmark="aime24", num_generations=4)
    assert 100 * (cells[ood] - cells[ood.baseline]) == pytest.approx(6.67, abs=0.005)
    times = key._replace(role="train", benchmark="train", measure="seconds", num_generations=8)
    assert {cells[times], cells[times.baseline]} == {4739.0, 5054.0}
