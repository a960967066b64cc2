"""Claims about the time of a training."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from claim_rows import cell, claim, ruled, scores_of

from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.analyse.records import GPUS
from mcgrpo.report.claims.judge import judge
from mcgrpo.report.claims.tables import evidence
from mcgrpo.report.page.verdicts import claim_rows

OURS = read_claims(Path(__file__).parents[2] / "config/claims.yaml")


def test_a_ratio_of_seconds(tmp_path):
    train = {"role": "train", "measure": "seconds_per_step"}
    sides = {"numerator": {"method": "mc-grpo"}, "denominator": {"method": "grpo"}}
    ratio = {name: side | {"num_generations": 4} | train for name, side in sides.items()}
    ruling = ruled(tmp_path, claim({"at_most": 1.5, "ratio": ratio}), times())
    assert ruling.verdict == "holds"
    assert "is 1.2 [1.18, 1.22] times, claimed ≤ 1.5, 5 seeds" in evidence(ruling)


def times(budget=4, gpus=1, setting="toy"):
    """A method that takes 1.2 times as long as its baseline, on GPUs of its own."""
    base = np.array([100.0, 110.0, 90.0, 105.0, 95.0])
    of = {"benchmark": "train", "role": "train", "setting": setting}
    found = [cell("mc-grpo", budget, base * np.array([1.18, 1.2, 1.22, 1.19, 1.21]), measure="seconds_per_step", **of)]
    found.append(cell("grpo", budget, base, measure="seconds_per_step", **of))
    return [*found, *(cell(method, budget, gpus, measure=GPUS, **of) for method in ("mc-grpo", "grpo"))]


@pytest.mark.parametrize(("gpus", "expected"), [(1, "holds"), (0, "not judged"), ([2, 2, 2, 2, 0], "not judged")])
def test_times_are_judged_of_trainings_on_gpus_alone(tmp_path, gpus, expected):
    (longer,) = [each for each in OURS if each.id == "takes-longer"]
    scores = scores_of(*(times(g, gpus) for g in (2, 4, 8)))
    (ruling,) = judge([longer], contrasts([longer], scores, {key.without_measure for key in scores}), "ours")
    assert ruling.verdict == expected
    assert {row.verdict for row in ruling.findings} == {expected}
    assert ("times are judged on GPUs." in evidence(ruling)) == (expected == "not judged")


def seconds(method, budget=4, **other):
    return {"method": method, "num_generations": budget, "role": "train", "measure": "seconds_per_step"} | other


def test_a_setting_whose_times_cannot_be_judged_does_not_hide_those_of_another(tmp_path):
    row = claim({"above": 1.5, "ratio": {"numerator": seconds("mc-grpo"), "denominator": seconds("grpo")}})
    other = times(gpus=0, setting="another")
    assert ruled(tmp_path, row, times(gpus=1), other).verdict == "fails", "1.2 times, on GPUs"
    assert ruled(tmp_path, row, times(gpus=0), other).verdict == "not judged"


def test_times_spelt_as_a_difference_are_judged_alike(tmp_path):
    row = claim({"above": 0, "terms": [seconds("mc-grpo"), seconds("grpo", weight=-1)]})
    assert ruled(tmp_path, row, times(gpus=1)).verdict == "holds"
    assert ruled(tmp_path, row, times(gpus=0)).verdict == "not judged"


def test_a_time_that_lacks_a_cell_is_not_measured_whatever_the_others_are(tmp_path):
    ratios = [
        {"at_most": 2, "ratio": {"numerator": seconds("mc-grpo", g), "denominator": seconds("grpo", g)}} for g in (2, 4)
    ]
    ruling = ruled(tmp_path, claim(*ratios), times(2, gpus=0), times(4, gpus=0)[:1])
    assert ruling.verdict == "not judged"
    assert [row.verdict for row in ruling.findings] == ["not judged", "not measured"]
    (row,) = claim_rows([ruling], [ruling], pd.DataFrame(columns=["setting", "benchmark", "n", "role"]))
    assert [verdict for verdict, _ in row.ours.findings] == ["not judged"]
    assert row.n == "5 seeds; 1 comparison"


def test_a_ratio_of_no_time_names_its_seed(tmp_path):
    row = claim({"at_most": 2, "ratio": {"numerator": seconds("mc-grpo"), "denominator": seconds("grpo")}})
    of = {"benchmark": "train", "role": "train", "measure": "seconds_per_step"}
    with pytest.raises(ValueError, match="a ratio needs positive numbers, not 0 of seed 1"):
        ruled(tmp_path, row, cell("mc-grpo", 4, [1.0, 0.0], **of), cell("grpo", 4, [1.0, 1.0], **of))
