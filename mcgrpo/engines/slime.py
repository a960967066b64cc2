"""The estimators in slime: `--custom-reward-post-process-path mcgrpo.engines.slime.post_process_rewards`.

`--n-samples-per-prompt` is G + the extra rollouts, `--global-batch-size` the rollouts kept per step. The estimator and
other keyword arguments of `estimate` are under `mcgrpo` in the file of `--custom-config-path`. docs/engines.md.
"""

from argparse import Namespace
from collections.abc import Hashable
from typing import Any

import torch

from mcgrpo.estimators.rows import estimate_rows, kept_generations


def post_process_rewards(args: Namespace, samples: list[Any]) -> tuple[list[float], list[float]]:
    """slime's signature: the rewards and, as slime's `grpo` takes them, the advantages; dropped samples are removed.

    slime's loss is a mean over rollout ids, so that of a removed sample becomes the id of a kept one of its group.
    Samples with one rollout id (the parts of one rollout) count once, and all of them are kept or removed.

    Args:
        args: slime's arguments.
        samples: slime's `Sample`s of a batch, each with a `group_index`; a reward of None or NaN is no reward.

    Raises:
        ValueError: as `estimate_rows`; for a `--global-batch-size` that does not divide the number of kept rollouts, as
            slime would leave out the rest.
    """
    options = dict(getattr(args, "mcgrpo", None) or {})
    estimator = options.pop("estimator", "median-mad")
    num_generations = kept_generations(estimator, args.n_samples_per_prompt, options.get("extra_rollouts"))
    raw = [torch.nan if reward is None else reward for reward in (each.get_reward_value(args) for each in samples)]
    rollouts: dict[Hashable, list[int]] = {}
    for row, sample in enumerate(samples):
        if sample.rollout_id is None:
            sample.rollout_id = sample.index  # which is what slime takes it for
        rollouts.setdefault(sample.rollout_id, []).append(row)
    groups = [samples[rows[-1]].group_index for rows in rollouts.values()]
    advantages, keep, _ = estimate_rows(
        torch.tensor([raw[rows[-1]] for rows in rollouts.values()], dtype=torch.float),
        groups,
        estimator,
        num_generations,
        **options,
    )
    if keep.sum() % args.global_batch_size:
        raise ValueError(
            f"--global-batch-size {args.global_batch_size} does not divide the {keep.sum()} rollouts that are kept of "
            f"{len(rollouts)}: set it to --rollout-batch-size x {num_generations} / steps per rollout"
        )
    heirs = {group: rollout for rollout, group, kept in zip(rollouts, groups, keep.tolist(), strict=True) if kept}
    per_sample = [0.0] * len(samples)
    for rows, group, advantage, kept in zip(rollouts.values(), groups, advantages.tolist(), keep.tolist(), strict=True):
        for row in rows:
            if kept:
                per_sample[row] = advantage
            else:
                samples[row].remove_sample, samples[row].rollout_id = True, heirs[group]
    return raw, per_sample
