"""The exact signal against updates that a real policy samples, with gradients through the trainer's own loss."""

import pytest
import torch
from bigram import sampled_updates

from mcgrpo.estimators import ESTIMATORS, quantile, register, signal

LEVELS, CHANCES = [0.0, 1.5, 2.0], [0.5, 0.2, 0.3]
EACH = 2
"""Equally likely outcomes of each level: the remainders have variance EACH - 1 if a level's own part is in e_l - p."""

CASES = {
    "grpo": ("mean-std", 2, {}),
    "mc-grpo": ("median-mad", 2, {"mad_zero": "std"}),
    "mc-grpo, bounded": ("median-mad", 4, {"max_advantage": 5.0}),
    "grpo-plus1, with ties of two levels": ("mean-std-plus1", 3, {}),
    "rloo": ("rloo", 8, {}),
    "pods": ("pods", 4, {"extra_rollouts": 4}),
    "an estimator of one's own": ("median-two-dropped", 2, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "size", "options"), CASES.values(), ids=CASES)
def test_updates_have_the_mean_and_the_variance_that_are_computed(estimator, size, options, tmp_path, monkeypatch):
    monkeypatch.setattr("mcgrpo.estimators.registry.ESTIMATORS", ESTIMATORS)
    if estimator not in ESTIMATORS:
        register(estimator, quantile(0.5, scale=None, extra_rollouts=2))
    rewards = [level for level in LEVELS for _ in range(EACH)]
    chances = [chance / EACH for chance in CHANCES for _ in range(EACH)]
    settings = {"estimator": estimator, "num_generations": size, **options}
    updates = sampled_updates(tmp_path, rewards, chances, prompts=300, steps=10, **settings)

    found = signal(estimator, size, LEVELS, [CHANCES], rho=EACH - 1, **options)
    of_outcomes = found.direction[0].repeat_interleave(EACH)
    share = torch.tensor(chances, dtype=torch.float64)
    mean = share * (of_outcomes - share @ of_outcomes)
    errors = updates.std(dim=0) / len(updates) ** 0.5
    assert ((updates.mean(dim=0) - mean).abs() < 4 * errors).all()
    assert mean.abs().max() > 10 * errors.max()

    squares = (updates - updates.mean(dim=0)).square().sum(dim=1)
    expected = found.noise.item() / EACH  # a level's own part is spread over its outcomes
    assert squares.mean().item() == pytest.approx(expected, abs=4 * (squares.std() / len(squares) ** 0.5).item())
    assert squares.std() / len(squares) ** 0.5 < 0.05 * expected
