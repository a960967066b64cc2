"""Batches of rewards for tests of estimators, and what an estimator makes of them."""

import torch
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcgrpo.estimators import ESTIMATORS, estimate

NAN = float("nan")
MEDIAN = ("median-mad", "median")
# What a group gets depends on the others:
OVER_BATCH = ("batch-std", "reinforce++", "james-stein", "batch-mean")
# The centre is that of other groups too, or of nothing that is drawn:
NOT_OF_ITS_GROUP = ("james-stein", "batch-mean", "sign")


def one(rewards, estimator, num_generations, **kwargs):
    """Advantages and kept rows of one group, as lists."""
    rewards = torch.tensor([rewards])
    advantages, keep, _ = estimate(rewards, estimator, num_generations, **kwargs)
    return advantages[0].tolist(), keep[0].tolist()


def of(batch, **kwargs):
    """What `estimate` returns for one of `batches`."""
    rewards, estimator, num_generations = batch
    return estimate(rewards, estimator, num_generations, **kwargs)


@st.composite
def batches(draw, names=tuple(ESTIMATORS)):
    """(rewards as drawn by some estimator, its name, G): discrete rewards, so that ties are common."""
    estimator = draw(st.sampled_from(sorted(names)))
    num_generations = draw(st.sampled_from([2, 3, 4, 8]))
    shape = (draw(st.integers(1, 5)), num_generations + ESTIMATORS[estimator].extra_rollouts)
    levels = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, NAN])
    return torch.from_numpy(draw(arrays("float32", shape, elements=levels))), estimator, num_generations
