"""Scales other than those about a centre: about the mean, over the whole batch, or the mean itself."""

from torch import Tensor

from mcgrpo.estimators.statistics import mean, std


def spread(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of each group about its mean, whatever the centre; with Bessel's correction.

    The scale of QAE, arXiv 2509.22611; `statistics.std` is about the centre that it is given.
    (groups, drawn) -> (groups, 1); NaN for a group with fewer than two scorable rollouts.
    """
    return std(rewards, mean(rewards))


def batch_std(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of all rewards of the batch: TRL's `scale_rewards="batch"` (arXiv 2508.08221).

    (groups, drawn) -> (1, 1), with Bessel's correction, by the operations of TRL's `nanstd`; `centre` is not used.
    """
    return spread(rewards.reshape(1, -1), centre)


def batch_deviation(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of all centred rewards of the batch: REINFORCE++ with a group baseline, arXiv 2501.03262.

    (groups, drawn) -> (1, 1), with Bessel's correction. The mean that the paper subtracts is 0 for centred rewards.
    Each rollout counts once; verl weights it by its tokens (`compute_reinforce_plus_plus_baseline_outcome_advantage`).
    """
    return batch_std(rewards - centre, centre)


def positive_mean(rewards: Tensor, centre: Tensor) -> Tensor:
    """The mean of each group: MaxRL, arXiv 2602.02710, whose gradient is that of log P(success) as the group grows.

    A = (r - mean) / mean, so a prompt that succeeds with probability p counts 1 / p times as much as without a scale.
    (groups, drawn) -> (groups, 1); `centre` is not used.

    Raises:
        ValueError: naming a negative reward: the mean of a group could be 0 or less though its rewards differ.
    """
    if (rewards < 0).any():
        raise ValueError(
            f"advantages divided by the mean reward (MaxRL) need rewards of at least 0; these hold "
            f"{rewards[rewards < 0][0].item():g}. Use such rewards, or another estimator"
        )
    return mean(rewards)
