"""TRL's asynchronous GRPO with the estimators of `mcgrpo.estimators`, also with tools and environments.

TRL's rollout worker scores each group in a process of its own and puts its rows into the queue that training reads.
Here that worker draws the estimator's extra rollouts, and the rows of those that the estimator drops do not enter the
queue: they are in no forward pass, no loss and none of its denominators.
"""

from dataclasses import dataclass, fields, replace
from functools import partial
from inspect import signature
from itertools import islice
from unittest.mock import patch

import torch
import trl
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, async_grpo_trainer
from trl.experimental.async_grpo.async_rollout_worker import (
    AsyncRolloutWorker,
    RolloutGroup,
    RolloutSample,
    TrainingSequence,
    _AsyncRolloutLoop,
)

from mcgrpo.estimators import compute_estimate, estimate
from mcgrpo.trainer.config import EstimatorArguments
from mcgrpo.trainer.signature import signed_as

_NO_TOKENS = TrainingSequence([], [], [], "")


@dataclass
class MCAsyncGRPOConfig(EstimatorArguments, AsyncGRPOConfig):
    """Configuration class for `MCAsyncGRPOTrainer`: the parameters of TRL's `AsyncGRPOConfig`, and these.

    Args:
        estimator, extra_rollouts, advantage_epsilon, mad_zero, max_advantage: as in `MCGRPOConfig`.
    """

    def __post_init__(self):
        super().__post_init__()
        self.check_estimator(self.num_generations)
        _check_one_group(self)


class MCRolloutLoop(_AsyncRolloutLoop):
    """TRL's rollout loop with an estimator; runs in the worker's process.

    The only change is `_score_group`: TRL's own method scores the group, then advantages are estimated from the rewards
    of its rollouts, and the rows of dropped rollouts are left out. A rollout may have several rows (its conversation
    was retokenized differently), which share its advantage, or none (no token to train on), and still counts as one of
    its group. TRL's groups are in the order in which rollouts ended, so they are estimated in a random one: which of
    equal rewards is dropped must not depend on length. Diagnostics of all rollouts drawn are logged with TRL's metrics
    (`mcgrpo.estimators.diagnostics`).
    """

    def __init__(self, *, num_generations: int, estimation: EstimatorArguments, **others):
        super().__init__(num_generations=num_generations + estimation.num_extra_rollouts, **others)
        self.estimation, self.kept = estimation, num_generations

    async def _score_group(self, group: RolloutGroup) -> list[RolloutSample]:
        sequences = [rows or [_NO_TOKENS] for rows in group.completions_sequences]  # a row at least, with the reward
        samples = iter(await super()._score_group(replace(group, completions_sequences=sequences)))
        rollouts = [list(islice(samples, len(rows))) for rows in sequences]
        rewards = torch.tensor([[rows[0].metrics["reward"] for rows in rollouts]], dtype=torch.float64)
        order, args = torch.randperm(len(rollouts)), self.estimation
        advantages, keep, diagnostics = estimate(
            rewards[:, order],
            args.estimator,
            self.kept,
            max_advantage=args.max_advantage,
            **args.options,
        )
        self._push_metrics({name: value.item() for name, value in diagnostics.items()})
        back = order.argsort()
        kept_of, advantage_of = keep[0, back].tolist(), advantages[0, back].tolist()
        return [
            replace(row, advantage=advantage)
            for rows, has_tokens, kept, advantage in zip(
                rollouts, group.completions_sequences, kept_of, advantage_of, strict=True
            )
            if has_tokens and kept
            for row in rows
        ]


class MCRolloutWorker(AsyncRolloutWorker):
    """TRL's `AsyncRolloutWorker` with an estimator: `MCRolloutLoop` is what it runs.

    Args:
        estimation: the estimator and its options; as the other arguments, it is for the loop.
    """

    _loop_cls = MCRolloutLoop


class MCAsyncGRPOTrainer(AsyncGRPOTrainer):
    """TRL's `AsyncGRPOTrainer` whose rollout worker is an `MCRolloutWorker`; that is the only change.

    Raises:
        RuntimeError: if TRL is older than 1.11.
        TypeError: for arguments that are not an `MCAsyncGRPOConfig`, or a `rollout_worker`.
    """

    @signed_as(AsyncGRPOTrainer.__init__)
    def __init__(self, *args, **kwargs):
        if not hasattr(AsyncRolloutWorker, "_loop_cls") or not hasattr(_AsyncRolloutLoop, "_push_metrics"):
            raise RuntimeError(f"asynchronous GRPO needs TRL 1.11 or later: the loop of {trl.__version__} is fixed")
        arguments = signature(AsyncGRPOTrainer.__init__).bind_partial(self, *args, **kwargs).arguments
        given = arguments.get("args")
        if arguments.get("rollout_worker") is not None:
            raise TypeError("MCAsyncGRPOTrainer makes its rollout_worker itself: leave it out")
        if not isinstance(given, MCAsyncGRPOConfig):
            raise TypeError(f"MCAsyncGRPOTrainer needs args=MCAsyncGRPOConfig(...), not {type(given).__name__}")
        estimation = EstimatorArguments(**{each.name: getattr(given, each.name) for each in fields(EstimatorArguments)})
        worker = partial(MCRolloutWorker, estimation=estimation)
        with patch.object(async_grpo_trainer, "AsyncRolloutWorker", worker):  # there is no argument for its class
            super().__init__(*args, **kwargs)


def _check_one_group(args: EstimatorArguments) -> None:
    """Refuse an estimator whose advantages depend on other groups: a worker scores one group at a time."""
    size = 4 + args.num_extra_rollouts
    successes = (torch.arange(size) < torch.tensor([[1], [3]])).double()  # one success, three successes
    for groups in (successes, 2 * successes):
        try:
            together = compute_estimate(groups, args.estimator, 4, **args.options)
            alone = compute_estimate(groups[:1], args.estimator, 4, **args.options)
        except ValueError:  # a user-defined estimator may take rewards of one kind only
            continue
        if not torch.equal(together.advantages[:1], alone.advantages):
            raise ValueError(
                f"estimator {args.estimator!r} compares the groups of a batch, but asynchronous GRPO scores one at a "
                "time: choose another, such as 'median-mad'"
            )
