"""Batches of rewards for tests of estimators, and what an estimator makes of them."""

import torch
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcgrpo.estimators import ESTIMATORS, estimate

NAN = float("nan")
MEDIAN = ("median-mad", "median")
# What a group gets depends on the others:
OVER_BATCH = ("batch-std", "reinforce++", "james-stein", "bnpo", "batch-mean")
# The centre is that of other groups too, or of nothing that is drawn:
NOT_OF_ITS_GROUP = ("james-stein", "batch-mean", "sign")


def one(rewards, estimator, num_generations, **kwargs):
    """Advantages and kept rows of one group, as lists."""
    rewards = torch.tensor([rewards])
    kwargs = {"lengths": torch.ones_like(rewards)} | kwargs
    advantages, keep, _ = estimate(rewards, estimator, num_generations, **kwargs)
    return advantages[0].tolist(), keep[0].tolist()


def of(batch, **kwargs):
    """What `estimate` returns for one of `batches`."""
    rewards, estimator, num_generations, lengths = batch
    return estimate(rewards, estimator, num_generations, lengths=lengths, **kwargs)


@st.composite
def batches(draw, names=tuple(ESTIMATORS)):
    """(rewards as drawn by some estimator, its name, G, lengths): discrete rewards, so that ties are common."""
    estimator = draw(st.sampled_from(sorted(names)))
    num_generations = draw(st.sampled_from([2, 3, 4, 8]))
    shape = (draw(st.integers(1, 5)), num_generations + ESTIMATORS[estimator].extra_rollouts)
    levels = st.sampled_from([0.0, 1.0, NAN] if estimator == "bnpo" else [0.0, 1.0, 1.5, 2.0, 3.0, NAN])
    rewards, lengths = (
        draw(arrays(kind, shape, elements=each)) for kind, each in (("float32", levels), ("int64", st.integers(1, 9)))
    )
    return torch.from_numpy(rewards), estimator, num_generations, torch.from_numpy(lengths)
