"""verl's trainers without the dropped rollouts: `trainer.v1.trainer_mode=mcgrpo_sync` and the asynchronous two.

A plugin of its own, as these need TransferQueue. docs/engines.md.
"""

from typing import Any
from unittest.mock import patch

import torch
import transfer_queue as tq
from omegaconf import DictConfig
from torch import Tensor
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_colocate_async import PPOTrainerColocateAsync
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from mcgrpo.engines.verl import PREFIX, settings
from mcgrpo.estimators.rows import estimate_rows, kept_generations, over_tokens


def session_of(key: str) -> str:
    """A rollout's `{uid}_{session}`; verl's keys are `{uid}_{session}_{index}`, one for each of its outputs."""
    return key.rpartition("_")[0]


class WithoutDropped:
    """Mixin for verl's trainers: dropped rollouts are out of log-probabilities, loss, denominators and KL.

    The only changes: `_balance_batch`, the first method to see a batch whose rewards are known, estimates and drops;
    `_compute_advantage` takes these advantages; and in a step `rollout.n` is G, by which verl sizes its mini-batches.
    A rollout with several outputs counts once, and all its outputs are kept or dropped.

    Raises:
        ValueError: for another `adv_estimator` than ours, and for `use_kl_in_reward`, as advantages are computed before
            the KL is.
    """

    engine_mode: str

    def __init__(self, config: DictConfig):
        algorithm = config.algorithm
        if not algorithm.adv_estimator.startswith(PREFIX):
            raise ValueError(
                f"trainer.v1.trainer_mode={config.trainer.v1.trainer_mode} needs an algorithm.adv_estimator of mcgrpo "
                f"({PREFIX}median-mad), not {algorithm.adv_estimator}"
            )
        if algorithm.use_kl_in_reward:
            raise ValueError(
                "algorithm.use_kl_in_reward changes rewards after rollouts are dropped: use actor.use_kl_loss, or the "
                f"trainer {self.engine_mode}"
            )
        config.trainer.v1.trainer_mode = self.engine_mode  # verl asks for the name at many places
        super().__init__(config)
        self._estimator = algorithm.adv_estimator.removeprefix(PREFIX)
        self._options = settings(algorithm)
        self._advantages: dict[str, float] = {}

    def _step_once(self, *args: Any, **kwargs: Any) -> KVBatchMeta:
        rollout = self.config.actor_rollout_ref.rollout
        drawn = rollout.n
        rollout.n = kept_generations(self._estimator, drawn, self._options.get("extra_rollouts"))
        try:
            return super()._step_once(*args, **kwargs)
        finally:
            rollout.n = drawn

    def _balance_batch(self, batch: KVBatchMeta, metrics: dict, **kwargs: Any) -> KVBatchMeta:
        return super()._balance_batch(self._without_dropped(batch, metrics), metrics, **kwargs)

    def _without_dropped(self, batch: KVBatchMeta, metrics: dict) -> KVBatchMeta:
        data = tq.kv_batch_get(batch.keys, batch.partition_id, select_fields=["rm_scores"])
        sessions = {session_of(key): row for row, key in enumerate(batch.keys)}  # its outputs have the same reward
        rows = list(sessions.values())
        advantages, keep, diagnostics = estimate_rows(
            torch.stack([data["rm_scores"][row].sum() for row in rows]),
            [session.rpartition("_")[0] for session in sessions],
            self._estimator,
            self.config.actor_rollout_ref.rollout.n,
            **self._options,
        )
        metrics.update({name: value.item() for name, value in diagnostics.items()})
        self._advantages = dict(zip(sessions, advantages.tolist(), strict=True))
        kept = {session for session, stays in zip(sessions, keep.tolist(), strict=True) if stays}
        dropped = [key for key in batch.keys if session_of(key) not in kept]
        if dropped:
            tq.kv_clear(dropped, batch.partition_id)
        return batch.select_keys([key for key in batch.keys if session_of(key) in kept])

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict) -> KVBatchMeta:
        known = torch.tensor([self._advantages.get(session_of(key), 0.0) for key in batch.keys])

        def compute_advantage(response_mask: Tensor, **_: Any) -> tuple[Tensor, Tensor]:
            advantages = over_tokens(known, response_mask)
            return advantages, advantages

        with patch.dict(ADV_ESTIMATOR_REGISTRY, {self.config.algorithm.adv_estimator: compute_advantage}):
            return super()._compute_advantage(batch, metrics)


@register_trainer("mcgrpo_sync")
class SyncTrainer(WithoutDropped, PPOTrainerSync):
    """verl's `sync` trainer without the dropped rollouts."""

    engine_mode = "sync"


@register_trainer("mcgrpo_colocate_async")
class ColocateAsyncTrainer(WithoutDropped, PPOTrainerColocateAsync):
    """verl's `colocate_async` trainer without the dropped rollouts."""

    engine_mode = "colocate_async"


@register_trainer("mcgrpo_separate_async")
class SeparateAsyncTrainer(WithoutDropped, PPOTrainerSeparateAsync):
    """verl's `separate_async` trainer without the dropped rollouts."""

    engine_mode = "separate_async"
