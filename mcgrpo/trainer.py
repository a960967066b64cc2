"""MCGRPOTrainer: TRL's GRPOTrainer with another advantage estimator, and the extra rollouts that it needs."""

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from transformers import TrainerCallback
from trl import GRPOConfig

from mcgrpo import vllm_rollouts
from mcgrpo.compact import MEAN_OF_ROWS, CompactTrainer
from mcgrpo.estimators import MadZero, check_options, estimate, get_estimator
from mcgrpo.group_statistics import median
from mcgrpo.injected_flips import check_flips, draw_flips
from mcgrpo.kl_share import CLIPPED_LOSSES, gradient_parts
from mcgrpo.variants import FlipRule

PHASES = ("generation", "rewards", "logprobs", "update")


@dataclass
class MCGRPOConfig(GRPOConfig):
    """TRL's `GRPOConfig` with an advantage estimator.

    Args:
        estimator: a name in `mcgrpo.estimators.ESTIMATORS`, or `module:attribute` for one of your own; it takes the
            place of TRL's `scale_rewards`.
        extra_rollouts: drawn for each prompt beside the `num_generations` that are trained on; None for the
            estimator's own number.
        advantage_epsilon: added to the scale, in units of the reward; None for the estimator's own.
        mad_zero: what divides where a group's scale is 0 though its rewards differ (docs/mad-zero.md): `epsilon` (the
            paper), `std`, `mean_absolute_deviation`, `unit` or `skip`.
        max_advantage: advantages are clamped to [-max_advantage, max_advantage]; None for no bound.
        compact_updates: leave rows that add nothing to the gradient out of log-probabilities and updates, and pack the
            rest by length, wherever the gradient stays the same up to rounding (`mcgrpo.compact`). What TRL logs of
            updates (entropy, clip_ratio) then describes the rows that are computed. Without it, the estimators that
            TRL has give its losses bit for bit.
        advantage_flip_rate: share of advantages that are negated on purpose, to see what wrong signs do to training
            (MC-GRPO, section 2); 0 for none.
        advantage_flip_rule: `bernoulli` negates each advantage with that probability; `exact` that share of the kept
            rows of every group, which must be a whole number of rows. See `mcgrpo.estimators.draw_flips`.
    """

    estimator: str = field(default="median-mad", metadata={"help": "Advantage estimator; see mcgrpo.estimators."})
    extra_rollouts: int | None = field(
        default=None, metadata={"help": "Rollouts drawn beside num_generations; None for the estimator's own."}
    )
    advantage_epsilon: float | None = field(
        default=None, metadata={"help": "Added to the estimator's scale; None for the estimator's own."}
    )
    mad_zero: MadZero = field(
        default="epsilon", metadata={"help": "What divides where a group's scale is 0 though its rewards differ."}
    )
    max_advantage: float | None = field(default=None, metadata={"help": "Bound on |A|; None for none."})
    advantage_flip_rate: float = field(
        default=0.0, metadata={"help": "Share of advantages to negate on purpose, in [0, 1]."}
    )
    advantage_flip_rule: FlipRule = field(
        default="bernoulli",
        metadata={"help": "Negate each advantage with that probability, or exactly that share of every group."},
    )

    compact_updates: bool = field(
        default=True, metadata={"help": "Leave out what adds nothing to the gradient, and pack the rest by length."}
    )

    def __post_init__(self):
        super().__post_init__()
        rule = get_estimator(self.estimator)
        self.extra_rollouts = rule.extra_rollouts if self.extra_rollouts is None else self.extra_rollouts
        check_options(mad_zero=self.mad_zero, max_advantage=self.max_advantage, extra_rollouts=self.extra_rollouts)
        check_flips(self.advantage_flip_rate, self.advantage_flip_rule, self.num_generations)
        if self.scale_rewards != "group" or self.multi_objective_aggregation != "sum_then_normalize":
            raise ValueError(
                "scale_rewards and multi_objective_aggregation are the estimator's to decide here: leave both at "
                f"TRL's defaults and set `estimator` (now {self.estimator!r})"
            )
        if rule.centre is median and self.extra_rollouts and (self.num_generations + self.extra_rollouts) % 2 == 0:
            warnings.warn(
                f"num_generations={self.num_generations} with {self.extra_rollouts} extra makes groups of even size, "
                "in which no rollout is the median: the one dropped has an advantage. Choose an even num_generations.",
                stacklevel=3,
            )
        rows = self.per_device_train_batch_size * self.steps_per_generation
        if rows % self.num_generations:
            raise ValueError(
                f"num_generations={self.num_generations} does not divide the {rows} rows that each process "
                f"generates at a time (per_device_train_batch_size={self.per_device_train_batch_size} x "
                f"steps_per_generation={self.steps_per_generation}): a group would straddle two processes"
            )


class Rollouts(NamedTuple):
    """What `GRPOTrainer._generate` returns: a sequence per row, or None, in each place."""

    prompt_ids: list
    completion_ids: list
    tool_mask: list | None
    completions: list
    logprobs: list | None
    extra_fields: dict
    images: list | None
    tool_images: list

    def pick(self, rows: Sequence[int]) -> "Rollouts":
        """The given rows of every sequence."""

        def of(values):
            return [values[row] for row in rows] if isinstance(values, list) and values else values

        picked = Rollouts(*map(of, self))
        return picked._replace(extra_fields={name: of(values) for name, values in self.extra_fields.items()})


class Drawn(NamedTuple):
    """A generation batch as it was drawn and estimated: what `MCGRPOTrainer.observers` are called with.

    `inputs` and `rollouts` are this process's rows, group after group; the rest is (groups, drawn), of all processes in
    the order of their ranks. Rewards are NaN where a rollout could not be scored, lengths are in tokens.
    """

    inputs: list[dict[str, Any]]
    rollouts: Rollouts
    rewards: torch.Tensor
    lengths: torch.Tensor
    advantages: torch.Tensor
    keep: torch.Tensor


class MCGRPOTrainer(CompactTrainer):
    """GRPO with an advantage estimator of `mcgrpo.estimators`, such as the median and MAD of MC-GRPO.

    The only change to `GRPOTrainer`: while training, `_generate_and_score_completions` draws the estimator's extra
    rollouts, estimates, and hands TRL's own method the `num_generations` kept rows of each prompt, by overriding
    `_generate` and `_calculate_rewards` to return what was already drawn and scored. Sampler, batch arithmetic,
    log-probabilities, losses and their normalisers are TRL's, over the kept rows. With the estimator `mean-std` (or
    `mean`, against `scale_rewards="none"`) and without `compact_updates` the losses are those of TRL bit for bit.

    Where several rollouts of a group have the median reward, the pivot that is dropped is the longest of them if the
    gradient does not depend on the choice (beta = 0 and a loss that is a mean over rows), else the first drawn: with
    beta > 0 its KL term goes with it, and `dapo` divides by the tokens of the kept rows, so that a choice by length
    would be a bias.

    Sign flips (`advantage_flip_rate`) are drawn anew for each generation batch from `args.seed`, the global step it
    is generated at and its place among the micro-batches of that step, and from nothing else: the global random state
    is not touched, every process draws the same flips, and a resumed run draws those of an uninterrupted one.

    Rollouts of vLLM are drawn from `args.seed` too, see `mcgrpo.vllm_rollouts`.

    Logged beside TRL's metrics, which describe kept rows only: `drawn/*` (reward statistics over all rollouts drawn),
    `advantage/*` (see `mcgrpo.diagnostics`) and `seconds/*` (generation, rewards, logprobs, update); with sign flips
    `advantage/frac_flipped`, the share of kept rows with an advantage other than 0 in which it was negated; with a KL
    penalty `gradient/kl_share` (see `mcgrpo.kl_share`).

    Each of `observers` is called with every generation batch of training (`Drawn`), by all processes; its time counts
    as no phase's.

    Raises:
        ValueError: for what cannot be drawn ahead of TRL: environments and tools, and datasets with images; for a
            batch whose rows are not grouped by prompt.
    """

    _tag_names = ["trl", "grpo", "mc-grpo"]  # noqa: RUF012 (TRL's own attribute)

    def __init__(self, *args, **kwargs):
        for name in ("tools", "environment_factory"):
            if kwargs.get(name):
                raise ValueError(f"MCGRPOTrainer does not support `{name}`: rollouts are drawn before TRL sets it up")
        self._staged: tuple[Rollouts, torch.Tensor] | None = None
        self._seconds: dict[str, float] = defaultdict(float)
        self.observers: list[Callable[[Drawn], None]] = []
        with vllm_rollouts.used_by(self):
            super().__init__(*args, **kwargs)
        self.add_callback(PhaseTimer(self._seconds, self._metrics["train"]))

    def _generate(self, prompts: list):
        if self._staged is not None:
            return self._staged[0]
        with self._timed("generation"):
            return super()._generate(prompts)

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        if self._staged is not None:
            return self._staged[1]
        with self._timed("rewards"):
            return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        drawn, rollouts, rewards_per_func = self._draw(inputs)
        rewards, lengths = self._grouped(rewards_per_func, rollouts)
        advantages, keep, diagnostics = self._estimate(rewards, lengths)
        with self._timed("observers"):
            for observe in self.observers:
                observe(Drawn(drawn, rollouts, rewards, lengths, advantages, keep))
        local = self._local(keep).flatten().nonzero().flatten().tolist()
        self._keep_extra_logs(local, len(drawn))
        kept = self._local(advantages)[self._local(keep)]
        self._staged, self._active = (rollouts.pick(local), rewards_per_func[keep.flatten()]), kept != 0
        try:
            with self._timed("logprobs"):
                output = super()._generate_and_score_completions([drawn[row] for row in local])
        finally:
            self._staged = self._active = None
        output["advantages"] = kept
        if "old_per_token_logps" in output:  # any number does in a row that was left out, but NaN
            output["old_per_token_logps"].nan_to_num_(nan=0.0)
        self._log_estimate(advantages[keep], diagnostics)
        return output

    def _expand(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Each prompt's G rows -> G + extra rows, prompt by prompt; a group that is not one prompt is refused."""
        size = self.num_generations
        if "image" in inputs[0] or "images" in inputs[0]:
            raise ValueError("MCGRPOTrainer does not support datasets with images")
        if len(inputs) % size:
            raise ValueError(f"{len(inputs)} rows on this process do not divide into groups of {size}")
        groups = [inputs[start : start + size] for start in range(0, len(inputs), size)]
        for group in groups:
            if any(row["prompt"] != group[0]["prompt"] for row in group):
                raise ValueError(f"a group of {size} rows holds more than one prompt: {[r['prompt'] for r in group]}")
        return [dict(group[0]) for group in groups for _ in range(size + self.args.extra_rollouts)]

    def _draw(self, inputs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Rollouts, torch.Tensor]:
        """Expand to all rows, generate and score them, group after group.

        The first two are this process's rows; rewards are (rows of all processes, reward functions).
        """
        inputs = self._expand(inputs)
        size = self.num_generations
        prompts = [row["prompt"] for row in inputs]
        self.num_generations = size + self.args.extra_rollouts  # vLLM samples this many of every such-th prompt
        try:
            rollouts = Rollouts(*self._generate(prompts))
        finally:
            self.num_generations = size
        for name, values in rollouts.extra_fields.items():  # as TRL does for its reward functions
            for position, row in enumerate(inputs):
                row[name] = values[position] if isinstance(values, list) else values
        rewards = self._calculate_rewards(inputs, prompts, rollouts.completions, rollouts.completion_ids)
        return inputs, rollouts, rewards

    def weighted(self, rewards_per_func: torch.Tensor) -> torch.Tensor:
        """(rows, reward functions) -> (rows,) rewards, NaN where no function gave one."""
        rewards = (rewards_per_func * self.reward_weights.to(rewards_per_func.device).unsqueeze(0)).nansum(dim=1)
        rewards[torch.isnan(rewards_per_func).all(dim=1)] = torch.nan
        return rewards

    def _grouped(self, rewards_per_func: torch.Tensor, rollouts: Rollouts) -> tuple[torch.Tensor, torch.Tensor]:
        """Weighted rewards and lengths (tokens) of all processes' rollouts, both (groups, drawn)."""
        groups = self.weighted(rewards_per_func).view(-1, self.num_generations + self.args.extra_rollouts)
        lengths = torch.tensor([len(ids) for ids in rollouts.completion_ids], device=groups.device)
        return groups, self.accelerator.gather(lengths).view(groups.shape)

    def _estimate(
        self, rewards: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
        """Advantages and kept rows, both (groups, drawn) as their arguments are, and what to log of them."""
        args = self.args
        return estimate(
            rewards,
            args.estimator,
            self.num_generations,
            lengths=lengths,
            extra_rollouts=args.extra_rollouts,
            epsilon=args.advantage_epsilon,
            mad_zero=args.mad_zero,
            max_advantage=args.max_advantage,
            ties="longest" if self.beta == 0 and args.loss_type in MEAN_OF_ROWS else "first",
            adjust=self._adjust,
        )

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss = super()._compute_loss(model, inputs)
        if "ref_per_token_logps" in inputs and len(inputs["advantages"]) and self.args.loss_type in CLIPPED_LOSSES:
            self._log_kl_share(gradient_parts(inputs, self._logps, self.args))
        return loss

    def _log_kl_share(self, parts: torch.Tensor) -> None:
        penalty, policy = self.accelerator.reduce(parts, reduction="sum").tolist()
        if self.model.training and penalty + policy > 0:
            self._metrics["train"]["gradient/kl_share"].append(penalty / (penalty + policy))

    def _adjust(
        self, rewards: torch.Tensor, advantages: torch.Tensor, keep: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Inject sign flips; all are (groups, drawn)."""
        args = self.args
        if args.advantage_flip_rate == 0:
            return advantages, keep
        place = self._step % self.current_gradient_accumulation_steps  # not 0 if one step takes several generations
        key = f"{args.seed}/{self.state.global_step}/{place}"
        flips = draw_flips(keep, args.advantage_flip_rate, args.advantage_flip_rule, key)
        signed = keep & (advantages != 0)
        share = (flips & signed).sum() / signed.sum().clamp(min=1)
        self._metrics["train"]["advantage/frac_flipped"].append(share.item())
        return torch.where(flips, -advantages, advantages), keep

    def _local(self, groups: torch.Tensor) -> torch.Tensor:
        """This process's groups: rewards are gathered in the order of ranks, and no group straddles two."""
        return groups.chunk(self.accelerator.num_processes)[self.accelerator.process_index]

    def _keep_extra_logs(self, kept: Sequence[int], drawn: int) -> None:
        """Reward functions logged a value per rollout drawn: leave those of the kept rows, which TRL will log."""
        for column, values in self._pending_extra_logs.items():
            if len(values) == drawn:
                self._pending_extra_logs[column] = [values[row] for row in kept]

    def _log_estimate(self, kept_advantages: torch.Tensor, diagnostics: dict[str, torch.Tensor]) -> None:
        logged = self._logs["advantages"]
        for _ in range(min(len(logged), kept_advantages.numel())):
            logged.pop()
        logged.extend(kept_advantages.tolist())
        for name, value in diagnostics.items():
            self._metrics["train"][name].append(value.item())

    @contextmanager
    def _timed(self, phase: str):
        start = now()
        try:
            yield
        finally:
            self._seconds[phase] += now() - start


class PhaseTimer(TrainerCallback):
    """Logs the seconds of each phase of an optimizer step under `seconds/*`; `update` is whatever is no other phase.

    Args:
        seconds: phase -> seconds so far, emptied when a step begins (an evaluation may have added to it).
        metrics: the trainer's, to which a value is added at every step.
    """

    def __init__(self, seconds: dict[str, float], metrics: dict[str, list[float]]):
        self.seconds, self.metrics, self.start = seconds, metrics, 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock: TRL generates within the step."""
        self.seconds.clear()
        self.start = now()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log the step, its optimizer's part included."""
        self.seconds["update"] = now() - self.start - sum(self.seconds.values())
        for phase in PHASES:
            self.metrics[f"seconds/{phase}"].append(self.seconds[phase])


def now() -> float:
    """Seconds on a clock, once a GPU has done what it was given."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()
