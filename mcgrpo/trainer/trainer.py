"""MCGRPOTrainer: TRL's GRPOTrainer with another advantage estimator, and the extra rollouts that it needs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from itertools import repeat
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from accelerate.utils import DistributedType, is_peft_model
from torch import Tensor
from trl import GRPOTrainer

from mcgrpo.estimators import Advantages, clamp_and_diagnose, compute_estimate
from mcgrpo.trainer import vllm as vllm_rollouts
from mcgrpo.trainer.compact import CompactTrainer
from mcgrpo.trainer.config import MCGRPOConfig
from mcgrpo.trainer.drawn import Drawn, GeneratedError, Rollouts, expand
from mcgrpo.trainer.flips import inject_flips
from mcgrpo.trainer.kl_share import gradient_parts, is_known
from mcgrpo.trainer.packing import Batch
from mcgrpo.trainer.signature import signed_as
from mcgrpo.trainer.surface import check_batch, check_trl
from mcgrpo.trainer.timing import PhaseTimer
from mcgrpo.trainer.unsupported import (
    check_arguments,
    check_processor,
    check_rollouts,
    check_row,
    check_trainable,
)
from mcgrpo.trainer.watch import Watch

_ARGUMENTS = signature(GRPOTrainer.__init__)


class MCGRPOTrainer(CompactTrainer):
    """Trainer for GRPO with an estimator of `mcgrpo.estimators`, such as the median and MAD of MC-GRPO.

    The main change w.r.t. `GRPOTrainer` is in `_generate_and_score_completions`: while training, it draws the
    estimator's extra rollouts, estimates advantages, and gives the `num_generations` kept rows of each prompt to TRL's
    own method. That method is called twice: for all rows, up to the end of its `_generate`, and for the kept rows, when
    `_generate` and `_calculate_rewards` return what was already drawn and scored. Environments are reset the first time
    only. `_packed` is overridden to be timed, and `_compute_loss` to measure the KL penalty's share of the gradient.
    Sampler, batch arithmetic, log-probabilities and losses are TRL's, over the kept rows. What overrides share is in
    `mcgrpo.trainer.drawn.BatchState`.

    The base classes have overrides of their own: they leave rows without an advantage out of updates
    (`CompactTrainer`), and make checkpoints complete (`ResumableTrainer`).

    With the estimator `mean-std` (or `mean`, against TRL's `scale_rewards="none"`) and without `compact_updates`,
    losses are those of TRL bit for bit, but for equal rewards whose mean is rounded: `mean` gives these 0.

    Logged beside TRL's metrics: `drawn/*` and `advantage/*` (`mcgrpo.estimators.diagnostics`), `flips/*`, `seconds/*`
    (generation, rewards, logprobs, update), with sign flips `advantage/frac_flipped`, and with a KL penalty
    `gradient/kl_l1_share_logps` (`mcgrpo.trainer.kl_share`); with vLLM, `sampling/importance_sampling_ratio/frac_zero`,
    the share of rows or tokens that TRL masks. TRL's `reward*` describe the kept rows only; its
    `completions/*` and `num_tokens` describe all rollouts drawn.

    `observers` are called with every generation batch of training (`Drawn`), on all processes. Their time is not
    counted in any phase.

    `mcgrpo.trainer.watch.Watch` warns if the scale is 0 in most groups, if all completions are cut off and nothing is
    learned, or if vLLM's probabilities are so far off that many rows are masked, and stops if no rollout can be scored.

    Args: those of `GRPOTrainer`; `args` is an `MCGRPOConfig`.

    Raises:
        TypeError: for arguments that are not an `MCGRPOConfig`.
        ValueError: for images; for a model with nothing to train; for a batch whose rows are not grouped by prompt.
        ImportError: for Liger's kernels if they are not installed.
        RuntimeError: if a method of TRL that is overridden here has changed (`mcgrpo.trainer.surface`).
    """

    _tag_names = ["trl", "grpo", "mc-grpo"]  # noqa: RUF012 (TRL's own attribute)

    @signed_as(GRPOTrainer.__init__)
    def __init__(self, *args, **kwargs):
        check_trl()
        given = _ARGUMENTS.bind(self, *args, **kwargs).arguments
        del given["self"]
        if given.get("args") is None:  # as TRL does
            model = given["model"]
            name = model if isinstance(model, str) else model.config.name_or_path
            given["args"] = MCGRPOConfig(f"{Path(name).name}-MC-GRPO")
        check_arguments(given)
        with vllm_rollouts.used_by(self):
            super().__init__(**given)
        check_processor(self.processing_class)  # TRL may have loaded it
        check_trainable(self.model)
        self.observers: list[Callable[[Drawn], None]] = []
        self._watch = Watch(self.args, warns=self.accelerator.is_main_process)
        self._timer = PhaseTimer(self._metrics["train"])
        self.add_callback(self._timer)

    def _generate(self, prompts: list):
        if self._batch.rollouts is not None:
            return self._batch.rollouts
        with self._cast_weights_once():
            generated = super()._generate(prompts)
        if self._batch.draws:
            raise GeneratedError(prompts, Rollouts(*generated))
        return generated

    def _cast_weights_once(self) -> AbstractContextManager:
        """Autocast around a whole generation: a weight is cast once, not for each token, to the same numbers.

        accelerate's own autocast is around each forward pass, after which torch forgets the casts; PEFT generates
        without it, and so in fp32. Casts of sharded weights would hold the model whole. Users' functions, and vLLM, are
        not called within it.
        """
        is_whole = self.accelerator.distributed_type not in (DistributedType.DEEPSPEED, DistributedType.FSDP)
        by_others = self.use_vllm or self.args.use_transformers_continuous_batching or self.rollout_func or self.tools
        is_theirs = by_others or is_peft_model(self.model)
        return self.accelerator.autocast() if is_whole and not is_theirs else nullcontext()

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        if self._batch.rewards_per_func is not None:
            return self._batch.rewards_per_func
        return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Batch:
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        inputs, rollouts, rewards_per_func = self._draw(inputs)
        with self._timer.phase("logprobs"):  # as where TRL computes its advantages
            rewards, lengths = self._group(rewards_per_func, rollouts)
            estimated = self._modify_estimate(self._estimate(rewards))
            estimated, diagnostics = clamp_and_diagnose(estimated, self.args.max_advantage)
        drawn = Drawn(inputs, rollouts, rewards_per_func, rewards, lengths, estimated.advantages, estimated.keep)
        with self._timer.phase("observers"):
            for observe in self.observers:
                observe(drawn)
        output = self._prepare_kept(drawn)
        self._log_estimate(estimated, diagnostics, self._is_cut_off(drawn.lengths))
        return output

    def _draw(self, inputs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Rollouts, Tensor]:
        """Expand to all rows, generate and score them, group after group.

        Returns:
            The rows of this process, their rollouts, and the rewards: (rows of all processes, reward functions).
        """
        for row in inputs:
            check_row(row)
        inputs = expand(inputs, self.num_generations, self._group_size)
        with self._timer.phase("generation"):
            prompts, rollouts = self._generate_only(inputs)
        for name, values in rollouts.extra_fields.items():  # as TRL does for its reward functions
            for row, value in zip(inputs, values if isinstance(values, list) else repeat(values), strict=False):
                row[name] = value
        with self._timer.phase("rewards"):
            rewards = self._calculate_rewards(inputs, prompts, rollouts.completions, rollouts.completion_ids)
        return [{**row, "prompt": prompt} for row, prompt in zip(inputs, prompts, strict=True)], rollouts, rewards

    def _generate_only(self, inputs: list[dict[str, Any]]) -> tuple[list, Rollouts]:
        """TRL's method up to its generation: with environments it resets one per row and sets up the tools.

        Returns:
            The prompts of these rows, with what `reset` returned, and their rollouts.
        """
        with patch.object(self, "num_generations", self._group_size), patch.object(self._batch, "draws", True):
            try:  # vLLM and rollout functions read num_generations
                super()._generate_and_score_completions(inputs)
            except GeneratedError as generated:
                check_rollouts(generated.rollouts)
                return generated.prompts, generated.rollouts
        raise RuntimeError("TRL's _generate_and_score_completions did not call _generate, which mcgrpo overrides")

    @property
    def _group_size(self) -> int:
        return self.args.num_generations + self.args.num_extra_rollouts

    def _group(self, rewards_per_func: Tensor, rollouts: Rollouts) -> tuple[Tensor, Tensor]:
        """Weighted rewards (NaN where no function gave one) and lengths in tokens of all rollouts, (groups, drawn)."""
        rewards = (rewards_per_func * self.reward_weights.to(rewards_per_func.device).unsqueeze(0)).nansum(dim=1)
        rewards = rewards.masked_fill(torch.isnan(rewards_per_func).all(dim=1), torch.nan).view(-1, self._group_size)
        lengths = torch.tensor(rollouts.lengths, device=rewards.device)
        return rewards, self.accelerator.gather(lengths).view(rewards.shape)

    def _estimate(self, rewards: Tensor) -> Advantages:
        name, options = self.args.estimator, self.args.options
        return compute_estimate(rewards, name, self.num_generations, **options)

    def _modify_estimate(self, estimated: Advantages) -> Advantages:
        """Inject sign flips; a hook for whatever else changes an estimate before it is clamped and diagnosed.

        Flips depend on the seed, the global step and the generation's position within that step only: they are the same
        on every process and in a resumed run.
        """
        rate = self.args.advantage_flip_rate
        if rate == 0:
            return estimated
        position = self._step % self.current_gradient_accumulation_steps
        key = f"{self.args.seed}/{self.state.global_step}/{position}"
        flipped, share = inject_flips(estimated, rate, self.args.advantage_flip_rule, key)
        self._add_metric("advantage/frac_flipped", share.item())
        return flipped

    def _prepare_kept(self, drawn: Drawn) -> Batch:
        """TRL's own preparation of this process's kept rows, with their advantages in place of TRL's.

        Here the rows that are not kept, the pivots, leave the batch.
        """
        keep = self._local(drawn.keep)
        advantages = self._local(drawn.advantages)[keep]
        rows = keep.flatten().nonzero().flatten().tolist()
        self._pick_logs(rows, len(drawn.inputs))
        rewards = drawn.rewards_per_func[drawn.keep.flatten()]
        set_up = patch.multiple(self, environment_factories=None, environments=None, tools=[])  # not once more
        staged = self._batch.staged(drawn.rollouts.pick(rows), rewards, advantages != 0)
        with set_up, staged, self._timer.phase("logprobs"):
            output = super()._generate_and_score_completions([drawn.inputs[row] for row in rows])
        check_batch(output)
        output["advantages"] = advantages
        self._watch.look_at_ratios(self._finish_old_logps(output))
        return output

    def _pick_logs(self, rows: list[int], drawn: int) -> None:
        """Reward functions logged a value per rollout drawn: leave those of the given rows, which TRL will log."""
        for column, values in self._pending_extra_logs.items():
            if len(values) == drawn:
                self._pending_extra_logs[column] = [values[row] for row in rows]

    def _local(self, groups: Tensor) -> Tensor:
        """This process's groups: rewards are gathered in the order of ranks, and no group straddles two."""
        return groups.chunk(self.accelerator.num_processes)[self.accelerator.process_index]

    def _packed(self, batches: list[Batch]) -> list[Batch]:
        with self._timer.phase("logprobs"):
            return super()._packed(batches)

    def _compute_loss(self, model: Any, inputs: Batch) -> Tensor:
        loss = super()._compute_loss(model, inputs)
        if self.model.training and self.beta != 0 and is_known(self.args):
            self._measure_kl_share(inputs)
        return loss

    def _measure_kl_share(self, inputs: Batch) -> None:
        """Add up both parts of the gradient over an optimizer step's micro-batches and processes; log their share."""
        if len(inputs["advantages"]):
            self._batch.gradient_parts += gradient_parts(inputs, self._batch.logps, self.args)
        if self.accelerator.sync_gradients:  # the last micro-batch of an optimizer step
            penalty, policy = self.accelerator.reduce(self._batch.gradient_parts, reduction="sum").tolist()
            self._batch.gradient_parts = 0.0
            if penalty + policy > 0:
                self._add_metric("gradient/kl_l1_share_logps", penalty / (penalty + policy))

    def _is_cut_off(self, lengths: Tensor) -> bool:
        """Whether all rollouts drawn ended at the limit; TRL counts those without an end token, also shorter ones."""
        unended = self._metrics["train"]["completions/clipped_ratio"]
        return bool(unended) and unended[-1] == 1 and bool((lengths >= self.max_completion_length).all())

    def _log_estimate(self, estimated: Advantages, diagnostics: dict[str, Tensor], is_cut_off: bool) -> None:
        logged, kept = self._logs["advantages"], estimated.advantages[estimated.keep]
        for _ in range(min(len(logged), kept.numel())):
            logged.pop()
        logged.extend(kept.tolist())
        values = {name: value.item() for name, value in diagnostics.items()}
        self._watch.look(values, kept.numel() // self.num_generations, self.state.global_step, is_cut_off)
        for name, value in values.items():
            self._add_metric(name, value)

    def _add_metric(self, name: str, value: float) -> None:
        self._metrics["train"][name].append(value)
