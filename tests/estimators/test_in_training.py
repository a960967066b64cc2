"""Every estimator in a real trainer: what it asks for reaches it, and what it says reaches the updates."""

from collections import Counter

import pytest
import torch
from tiny_training import Ours, digits_reward, history, texts_of, trained

from mcgrpo.estimators import ESTIMATORS, MAD_ZERO

pytestmark = pytest.mark.slow

SIZE = 4


def binary_reward(completions, **kwargs):
    return [float(reward > 0) for reward in digits_reward(completions)]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_trains(name, tmp_path):
    trainer = trained(Ours, tmp_path, binary_reward, estimator=name, num_generations=SIZE, max_steps=1)
    (batch,) = trainer.batches
    assert batch["advantages"].shape == (8,) and batch["advantages"].isfinite().all()
    assert batch["advantages"].any() and torch.isfinite(trainer.losses[0])
    assert set(Counter(texts_of(trainer, batch, "prompt_ids")).values()) == {SIZE}
    (largest,) = history(trainer, "advantage/abs_max")
    assert largest == pytest.approx(batch["advantages"].abs().max().item())


@pytest.mark.parametrize("mad_zero", MAD_ZERO)
def test_where_the_mad_is_zero_and_how_large_an_advantage_may_be_is_up_to_the_config(mad_zero, tmp_path):
    options = {"mad_zero": mad_zero, "max_advantage": 50.0, "estimator": "median-mad", "num_generations": SIZE}
    trainer = trained(Ours, tmp_path, binary_reward, **options)
    largest = {"epsilon": 50.0, "unit": 1.0, "skip": 0.0}.get(mad_zero)
    found = history(trainer, "advantage/abs_max")[0]
    assert 0 < found < 50.0 if largest is None else found == largest
    assert history(trainer, "advantage/frac_scale_zero") == [1.0] * 3
    assert 0 < history(trainer, "advantage/frac_scale_zero_signal")[0] <= 1
    assert (history(trainer, "advantage/frac_clamped")[0] > 0) == (mad_zero == "epsilon")
