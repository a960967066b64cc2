"""The verdict that a difference is equivalent to none: of what kind of claim, and within which margin."""

import pytest
from claim_rows import claim, claims_of, endpoint, gain, pair, ruled, scores_of

from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.report.claims.judge import judge


@pytest.mark.parametrize("bound", [{"above": 0}, {"at_least": 0}, {"below": 0}, {"at_most": 0}])
@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        ((0.002, 0.009), "equivalent"),  # the 90% interval is [-0.5, 0.9] points
        ((0.004, 0.009), "inconclusive"),  # [-0.3, 1.1]
        ((-0.002, 0.012), "inconclusive"),  # [-1.1, 0.7]
    ],
)
def test_a_claim_of_a_sign_is_equivalent_within_the_margin_of_0(tmp_path, bound, difference, expected):
    ruling = ruled(tmp_path, claim(gain(**bound)), pair(*difference))
    assert (ruling.verdict, endpoint(ruling).verdict) == (expected, expected)


def test_the_margin_is_the_studys(tmp_path):
    scores, claims = scores_of(pair(0.002, 0.009)), claims_of(tmp_path, claim(gain(above=0)))
    planned = {key.without_measure for key in scores}
    rulings = [judge(claims, contrasts(claims, scores, planned, margin=margin), "ours")[0] for margin in (0.01, 0.005)]
    assert [ruling.verdict for ruling in rulings] == ["equivalent", "inconclusive"]


def test_a_claim_that_some_setting_gains_is_equivalent_once_no_setting_does(tmp_path):
    row = claim(gain(above=0), quantifier="some")
    same, worse = pair(0.0, 0.005, setting="a"), pair(-0.03, setting="b")
    assert ruled(tmp_path, row, same, worse).verdict == "equivalent"
    assert ruled(tmp_path, row, same, planned=worse).verdict == "not measured"


@pytest.mark.parametrize("bound", [{"within": 0.1}, {"above": 0.1}, {"at_least": -0.5, "at_most": 0}])
def test_only_a_claim_of_a_sign_can_be_equivalent(tmp_path, bound):
    assert ruled(tmp_path, claim(gain(**bound)), pair(0.0, 0.009)).verdict == "inconclusive"


@pytest.mark.parametrize("measure", ["reward_first", "reward_unsteadiness"])
def test_in_rewards_the_margin_is_that_of_accuracy_times_the_reward_of_a_right_answer(tmp_path, measure):
    of = {"role": "train", "measure": measure}
    row = claim({"above": 0, "terms": [{"method": "mc-grpo", "num_generations": 2, "field": "difference", **of}]})
    scores, claims = scores_of(pair(0.0, 0.009, benchmark="train", **of)), claims_of(tmp_path, row)
    planned = {key.without_measure for key in scores}
    rulings = [judge(claims, contrasts(claims, scores, planned, margin=each), "ours")[0] for each in (0.005, 0.0025)]
    assert [ruling.verdict for ruling in rulings] == ["equivalent", "inconclusive"]


def test_a_difference_of_other_measures_is_never_equivalent(tmp_path):
    of = {"role": "train", "measure": "grad_norm"}
    row = claim({"above": 0, "terms": [{"method": "mc-grpo", "num_generations": 2, "field": "difference", **of}]})
    assert ruled(tmp_path, row, pair(0.0, 0.001, benchmark="train", **of)).verdict == "inconclusive"
