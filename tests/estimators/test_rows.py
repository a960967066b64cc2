"""Rollouts in any order, in groups by id, some of them incomplete: the batches of training engines."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mcgrpo.estimators import ESTIMATORS, estimate
from mcgrpo.estimators.rows import estimate_rows, estimate_tokens, kept_generations

NAN = float("nan")
GROUPS, G = 3, 4


def drawn_rewards(drawn, seed):
    return torch.randint(0, 5, (GROUPS, drawn), generator=torch.Generator().manual_seed(seed)) / 4


@given(st.sampled_from(sorted(ESTIMATORS)), st.integers(0, 99))
def test_whole_groups_give_what_estimate_gives_in_any_order(name, seed):
    rewards = drawn_rewards(G + ESTIMATORS[name].extra_rollouts, seed)
    advantages, keep, diagnostics = estimate(rewards, name, G)
    # rows of different groups are mixed; those of a group keep their order, which breaks ties
    places = torch.rand(rewards.shape, generator=torch.Generator().manual_seed(seed)).sort(dim=1).values
    order = places.flatten().argsort()
    ids = [f"prompt {row // rewards.size(1)}" for row in order.tolist()]
    of_rows, kept, same = estimate_rows(rewards.flatten()[order], ids, name, G)
    torch.testing.assert_close(of_rows, advantages.flatten()[order], rtol=0, atol=1e-6)
    assert torch.equal(kept, keep.flatten()[order])
    assert same.keys() == diagnostics.keys()


@pytest.mark.parametrize("rewards", [[0.0, 1.0, 3.0, 4.0], [0.0, 1.0, NAN, 3.0, 4.0], [0.0, 1.0, 3.0]])
def test_a_missing_rollout_is_an_unscorable_one(rewards):
    whole = torch.tensor([rewards + [NAN] * (5 - len(rewards))])
    expected, keep, _ = estimate(whole, "median-mad", G)
    found, kept, _ = estimate_rows(torch.tensor(rewards), ["a"] * len(rewards), "median-mad", G)
    assert found.tolist() == expected[0, : len(rewards)].tolist()
    assert kept.tolist() == keep[0, : len(rewards)].tolist()
    assert kept.sum() == min(G, len(rewards))


@pytest.mark.parametrize("name", sorted({*ESTIMATORS} - {"sign"}))
def test_a_missing_rollout_is_dropped_before_an_unscorable_one(name):
    drawn = 2 + ESTIMATORS[name].extra_rollouts
    rewards = torch.tensor([NAN, 1.0, NAN])[: drawn - 1]
    advantages, keep, _ = estimate_rows(rewards, ["a"] * len(rewards), name, 2)
    assert keep.sum() == min(2, len(rewards))
    assert not advantages[rewards.isnan()].any()


def test_without_g_the_largest_group_is_whole():
    rewards = torch.tensor([0.0, 1.0, 4.0, 2.0, 5.0])
    advantages, keep, _ = estimate_rows(rewards, [1, 1, 1, 2, 2], "median")
    assert advantages.tolist() == [-1.0, 0.0, 3.0, -1.5, 1.5]
    assert keep.tolist() == [True, False, True, True, True]


def test_a_group_with_too_many_rollouts_is_named():
    with pytest.raises(ValueError, match=r"group 'b' has 6 rollouts, .* takes 4 \+ 1 = 5 of each group"):
        estimate_rows(torch.zeros(11), ["a"] * 5 + ["b"] * 6, "median", G)


def test_every_row_needs_an_id():
    with pytest.raises(ValueError, match="4 group ids for rewards of shape"):
        estimate_rows(torch.zeros(5), ["a"] * 4, "median", G)


def test_no_rollouts_are_no_error():
    advantages, keep, diagnostics = estimate_rows(torch.zeros(0), [], "median", G)
    assert len(advantages) == len(keep) == 0 and diagnostics == {}


def test_advantages_are_at_the_tokens_of_kept_rows():
    mask = torch.tensor([[1, 1], [1, 0], [1, 1], [0, 1]])
    rewards = torch.tensor([[0.0, 1.0], [3.0, 0.0], [5.0, 2.0], [0.0, 0.0]])  # 1, 3, 7, 0: the median is 2
    advantages, keep = estimate_tokens(rewards, mask, ["a"] * 4, "median", 3)
    assert keep.tolist() == [False, True, True, True]
    assert advantages.tolist() == [[0.0, 0.0], [1.0, 0.0], [5.0, 5.0], [0.0, -2.0]]


def test_a_row_without_a_token_is_no_rollout():
    rewards = torch.tensor([[0.0], [9.0], [1.0], [9.0], [3.0]])
    advantages, keep = estimate_tokens(rewards, torch.tensor([[1], [0], [1], [0], [1]]), ["a"] * 5, "median", 2)
    assert advantages.flatten().tolist() == [-1.0, 0.0, 0.0, 0.0, 2.0]
    assert keep.tolist() == [True, False, False, False, True]


@pytest.mark.parametrize(
    ("name", "drawn", "extra", "kept"),
    [("median-mad", 9, None, 8), ("mean-std", 8, None, 8), ("median-mad", 9, 3, 6), ("median-mad", 9, 0, 9)],
)
def test_the_extra_rollouts_are_those_of_the_estimator_or_as_many_as_are_asked_for(name, drawn, extra, kept):
    assert kept_generations(name, drawn, extra) == kept


def test_ids_may_be_numbers_in_a_tensor():
    rewards, ids = torch.tensor([0.0, 1.0, 9.0, 3.0, 4.0, 2.0]), [7, 7, 8, 7, 8, 8]
    found, _, _ = estimate_rows(rewards, torch.tensor(ids), "median", 2)
    assert torch.equal(found, estimate_rows(rewards, ids, "median", 2)[0]) and found.any()
    assert estimate_tokens(rewards[:, None], torch.ones(6, 1), torch.tensor(ids), "median", 2)[0].any()


@pytest.mark.parametrize("rewards", [torch.tensor([1, 2, 3]), [1.0, 2.0, 3.0]])
def test_rewards_that_are_no_floats_are_refused(rewards):
    with pytest.raises(ValueError, match="rewards should be a tensor of floats, not"):
        estimate_rows(rewards, [0, 0, 0], "median", 2)
