"""The course of a training, and what it amounts to."""

import random

import pytest
from collected import a_run, metrics

from mcgrpo.analyse.curves import MEANS, curve, training_measures, unsteadiness


def test_curve_takes_the_logged_names():
    (point,) = curve(a_run(), [{"step": 3, "drawn/reward": 0.25, "reward": 0.9, "loss": 0.1}], {})
    assert (point.step, point.reward, point.loss, point.kl) == (3, 0.25, 0.1, None)


def test_rollouts_are_counted_and_their_accuracy_is_that_of_the_verdicts():
    verdicts = {"correct": 7.0, "equivalent": 3.0, "wrong": 9.0, "unparseable": 1.0, "timeout": 0.0, "error": 0.0}
    row = {"step": 1} | {f"verdicts/{name}": count for name, count in verdicts.items()}
    row["verdicts/gold_unparsable"] = 5.0  # rows that have a verdict as well
    one, none = curve(a_run(), [row, {"step": 2}], {1: 20})
    assert (one.rollouts, one.accuracy) == (20, 0.5)
    assert (none.rollouts, none.accuracy) == (None, None)
    assert training_measures([one, none, one], 1.0)["rollouts"] == 40


def test_a_gradient_that_is_longer_than_allowed_or_not_finite_was_clipped():
    """One that is not finite is in no mean."""
    norms = [0.5, 1.0, 1.5, float("inf"), None]
    points = curve(a_run(), [{"step": step, "grad_norm": norm} for step, norm in enumerate(norms)], {})
    assert training_measures(points, 1.0) == {"seconds": 1.0, "frac_grad_clipped": 0.5, "grad_norm": 1.0}
    assert training_measures(points, 1.0, max_grad_norm=0.1)["frac_grad_clipped"] == 1.0


def test_a_pause_does_not_change_the_seconds_per_step():
    """Of two updates on the same rollouts, the first generates; one step waited for a minute."""
    generates = {"seconds/generation": 2.0, "seconds/update": 1.0}
    rows = [generates, {"seconds/update": 1.0}, generates, {"seconds/update": 61.0}, generates, {"seconds/update": 1.0}]
    points = curve(a_run(), [{"step": step} | row for step, row in enumerate(rows)], {})
    assert training_measures(points, 75.0)["seconds_per_step"] == 2.0 / 2 + 1.0


def test_training_measures_by_hand():
    points = curve(a_run(), metrics(frac_scale_zero={1: 1.0, 2: 1.0}, entropy={1: 1.0, 2: 1.0}), {})
    found = training_measures(points, 12.5)
    by_hand = {
        "seconds": 12.5,
        "seconds_per_step": 2.0,  # four phases of half a second
        "reward": 0.525,  # from 0.05 to 1
        "reward_first": 1.05,
        "frac_scale_zero": 0.55,
        "entropy_first": 1.0,  # two of twenty steps
        "entropy_last": 0.5,
        "frac_grad_clipped": 0.0,
        "reward_unsteadiness": 0.0,  # it rises by a tenth at every step
    }
    assert found == pytest.approx(dict.fromkeys(MEANS, 0.5) | by_hand, abs=1e-12)
    points = curve(a_run(), [{"step": 1, "drawn/reward": 1.0, "grad_norm": float("nan")}], {})
    assert training_measures(points, 1.0) == {"seconds": 1.0, "frac_grad_clipped": 1.0, "reward": 1.0}


def test_unsteadiness_is_the_noise_of_a_level_curve():
    noise = random.Random(0)
    rewards = [1.0 + noise.gauss(0, 0.1) for _ in range(20_000)]
    assert unsteadiness(rewards) == pytest.approx(0.1, rel=0.02)
    assert unsteadiness([reward + step for step, reward in enumerate(rewards)]) == pytest.approx(unsteadiness(rewards))
    assert unsteadiness([0.0, 1.0]) is None
