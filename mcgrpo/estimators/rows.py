"""`estimate` for the batches of training engines: rollouts in any order, groups by id, some of them incomplete."""

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from mcgrpo.estimators.estimation import check_floats, estimate
from mcgrpo.estimators.registry import get_estimator


def estimate_rows(
    rewards: Tensor,
    groups: Sequence[Hashable] | Tensor,
    estimator: str,
    num_generations: int | None = None,
    *,
    extra_rollouts: int | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Advantages of rollouts in any order, and which of them reach the update.

    A group with fewer rollouts than G + the extra ones is filled up with unscorable rollouts, which are dropped before
    any other.

    Args:
        rewards: (rows,) floats, NaN where a rollout could not be scored. All rows of the batch.
        groups: the id of each row's group; a tensor holds numbers.
        estimator: a name that `get_estimator` knows.
        num_generations: G; None for the rollouts of the largest group without the extra ones.
        extra_rollouts: replaces the estimator's own number.
        options: the other keyword arguments of `estimate`.

    Returns:
        advantages: (rows,), in the dtype of rewards; exactly 0 for unscorable rollouts.
        keep: (rows,) booleans; at most G of them true in each group, and G in a group with at least G rollouts.
        diagnostics: as of `estimate`; missing rollouts count as unscorable.

    Raises:
        ValueError: as `estimate`; for a number of ids that is not that of the rewards; for a group with more than
            G + the extra rollouts, by its id.
    """
    check_floats(rewards)
    groups = _ids(groups)
    if rewards.dim() != 1 or len(groups) != len(rewards):
        raise ValueError(f"{len(groups)} group ids for rewards of shape {tuple(rewards.shape)}: one for each is needed")
    extra = get_estimator(estimator).extra_rollouts if extra_rollouts is None else extra_rollouts
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    largest = max(members, key=lambda group: len(members[group]), default=None)
    drawn = max(map(len, members.values()), default=extra) if num_generations is None else num_generations + extra
    if members and len(members[largest]) > drawn:
        raise ValueError(
            f"group {largest!r} has {len(members[largest])} rollouts, but estimator {estimator!r} takes "
            f"{drawn - extra} + {extra} = {drawn} of each group"
        )
    if not members:
        return rewards.clone(), torch.zeros_like(rewards, dtype=torch.bool), {}
    filled = [rows + [len(rewards)] * (drawn - len(rows)) for rows in members.values()]  # one past the end: none
    table = torch.tensor(filled, device=rewards.device)
    drawn_rewards = torch.cat([rewards, rewards.new_full((1,), torch.nan)])[table]
    advantages, keep, diagnostics = estimate(
        drawn_rewards,
        estimator,
        drawn - extra,
        extra_rollouts=extra,
        **options,
    )
    keep = _keep_before_missing(keep, drawn_rewards.isnan(), table == len(rewards))
    return _by_row(advantages, table, rewards), _by_row(keep, table, rewards), diagnostics


def kept_generations(estimator: str, drawn: int, extra_rollouts: int | None = None) -> int:
    """G, where an engine draws that many rollouts of a prompt; `extra_rollouts` as in `estimate`."""
    return drawn - (get_estimator(estimator).extra_rollouts if extra_rollouts is None else extra_rollouts)


def estimate_tokens(
    token_rewards: Tensor,
    mask: Tensor,
    groups: Sequence[Hashable] | Tensor,
    estimator: str,
    num_generations: int | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """`estimate_rows` for rewards per token, whose sum is the reward of a rollout; dropped rows get no advantage.

    A row without a token in the mask (padding, or a rejected rollout) is no rollout: it counts in no group.

    Args:
        token_rewards: (rows, tokens) floats.
        mask: (rows, tokens), nonzero for the tokens of the completion.
        groups: the id of each row's group; a tensor holds numbers.
        estimator: a name that `get_estimator` knows.
        num_generations: G; None for the rollouts of the largest group without the extra ones.
        options: the other keyword arguments of `estimate`.

    Returns:
        advantages: (rows, tokens): those of kept rows, at each token of the mask; 0 elsewhere.
        keep: (rows,) booleans.
    """
    groups = _ids(groups)
    rows = (mask != 0).any(dim=1).nonzero().flatten()
    scalar = token_rewards.sum(dim=1)
    of_rows, kept, _ = estimate_rows(
        scalar[rows],
        [groups[row] for row in rows.tolist()],
        estimator,
        num_generations,
        **options,
    )
    advantages = torch.zeros_like(scalar).index_copy(0, rows, of_rows.where(kept, 0))
    keep = torch.zeros_like(scalar, dtype=torch.bool).index_copy(0, rows, kept)
    return over_tokens(advantages, mask), keep


def over_tokens(advantages: Tensor, mask: Tensor) -> Tensor:
    """(rows,) -> (rows, tokens): each row's advantage at the tokens of the mask, 0 elsewhere."""
    return advantages.to(mask.device).unsqueeze(1) * (mask != 0)


def _ids(groups: Sequence[Hashable] | Tensor) -> Sequence[Hashable]:
    """Those of a tensor as numbers: its elements are hashed by identity, so that each would be a group of its own."""
    return groups.tolist() if isinstance(groups, Tensor) else groups


def _keep_before_missing(keep: Tensor, unscorable: Tensor, missing: Tensor) -> Tensor:
    """Keep an unscorable rollout in place of each missing one that is kept; neither has an advantage."""
    spare = unscorable & ~missing & ~keep
    return keep | (spare & (spare.cumsum(dim=1) <= (keep & missing).sum(dim=1, keepdim=True)))


def _by_row(values: Tensor, table: Tensor, rewards: Tensor) -> Tensor:
    """(groups, drawn) -> (rows,); what was filled in is left out."""
    by_row = torch.zeros(len(rewards) + 1, dtype=values.dtype, device=values.device)
    return by_row.index_copy(0, table.flatten(), values.flatten())[:-1]
