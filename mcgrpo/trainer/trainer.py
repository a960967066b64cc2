"""MCGRPOTrainer: TRL's GRPOTrainer with another advantage estimator, and the extra rollouts that it needs."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from datasets import Dataset
from trl import GRPOConfig

from mcgrpo.estimators import Ties, estimate
from mcgrpo.trainer import vllm as vllm_rollouts
from mcgrpo.trainer.compact import MEAN_OF_ROWS, CompactTrainer, needs_whole_batches
from mcgrpo.trainer.config import MCGRPOConfig
from mcgrpo.trainer.flips import draw_flips
from mcgrpo.trainer.kl_share import gradient_parts, is_known
from mcgrpo.trainer.text_only import check_processor, check_row
from mcgrpo.trainer.timing import PhaseTimer, now
from mcgrpo.trainer.watch import Watch


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
    gradient does not depend on the choice (beta = 0, a loss that is a mean over rows, and no term that looks at all
    rows), else the first drawn: with beta > 0 its KL term goes with it, and `dapo` divides by the tokens of the kept
    rows, so that a choice by length would be a bias.

    Sign flips (`advantage_flip_rate`) are drawn anew for each generation batch from `args.seed`, the global step it
    is generated at and its place among the micro-batches of that step, and from nothing else: the global random state
    is not touched, every process draws the same flips, and a resumed run draws those of an uninterrupted one.

    Rollouts of vLLM are drawn from `args.seed` too, see `mcgrpo.trainer.vllm`.

    Logged beside TRL's metrics, which describe kept rows only: `drawn/*` (reward statistics over all rollouts drawn),
    `advantage/*` (see `mcgrpo.estimators.diagnostics`) and `seconds/*` (generation, rewards, logprobs, update); with
    sign flips `advantage/frac_flipped`, the share of kept rows with an advantage other than 0 in which it was negated;
    with a KL penalty `gradient/kl_l1_share_logps` (see `mcgrpo.trainer.kl_share`).

    Each of `observers` is called with every generation batch of training (`Drawn`), by all processes; its time counts
    as no phase's.

    TRL's `completions/*` and `num_tokens` are of all rollouts drawn, too: they are logged where those are generated.

    Warns once where the scale is 0 in most groups, and stops where no rollout can be scored
    (`mcgrpo.trainer.watch.Watch`).

    Raises:
        TypeError: for arguments that are no `MCGRPOConfig`.
        ValueError: for what cannot be drawn ahead of TRL: environments and tools, and prompts with images; for a
            batch whose rows are not grouped by prompt.
    """

    _tag_names = ["trl", "grpo", "mc-grpo"]  # noqa: RUF012 (TRL's own attribute)

    def __init__(self, *args, **kwargs):
        for name in ("tools", "environment_factory"):
            if kwargs.get(name):
                raise ValueError(f"MCGRPOTrainer does not support `{name}`: rollouts are drawn before TRL sets it up")
        config = kwargs.get("args") or next((each for each in args if isinstance(each, GRPOConfig)), None)
        if not isinstance(config, MCGRPOConfig):
            raise TypeError(f"MCGRPOTrainer needs args=MCGRPOConfig(...), not {type(config).__name__}")
        check_processor(kwargs.get("processing_class"))
        if isinstance(dataset := kwargs.get("train_dataset"), Dataset) and len(dataset):
            check_row(dataset[0])
        self._staged: tuple[Rollouts, torch.Tensor] | None = None
        self._kl_parts: torch.Tensor | float = 0.0
        self._seconds: dict[str, float] = defaultdict(float)
        self.observers: list[Callable[[Drawn], None]] = []
        with vllm_rollouts.used_by(self):
            super().__init__(*args, **kwargs)
        check_processor(self.processing_class)  # TRL may have loaded it
        self._watch = Watch(config, warns=self.accelerator.is_main_process)
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
        with self._timed("logprobs"):  # as where TRL computes its advantages
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
            self._describe_ratios(output)
        self._log_estimate(advantages[keep], diagnostics)
        return output

    def _expand(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Each prompt's G rows -> G + extra rows, prompt by prompt; a group that is not one prompt is refused."""
        size = self.num_generations
        if len(inputs) % size:
            raise ValueError(f"{len(inputs)} rows on this process do not divide into groups of {size}")
        groups = [inputs[start : start + size] for start in range(0, len(inputs), size)]
        for group in groups:
            check_row(group[0])
            if any(row["prompt"] != group[0]["prompt"] for row in group):
                raise ValueError(f"a group of {size} rows holds more than one prompt: {[r['prompt'] for r in group]}")
        return [dict(group[0]) for group in groups for _ in range(size + self.args.num_extra_rollouts)]

    def _draw(self, inputs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Rollouts, torch.Tensor]:
        """Expand to all rows, generate and score them, group after group.

        The first two are this process's rows; rewards are (rows of all processes, reward functions).
        """
        inputs = self._expand(inputs)
        size = self.num_generations
        prompts = [row["prompt"] for row in inputs]
        self.num_generations = size + self.args.num_extra_rollouts  # vLLM samples this many of every such-th prompt
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
        groups = self.weighted(rewards_per_func).view(-1, self.num_generations + self.args.num_extra_rollouts)
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
            ties=self._ties,
            adjust=self._adjust,
        )

    @property
    def _ties(self) -> Ties:
        """Which of tied pivots is dropped: the longest, where the gradient does not depend on the choice."""
        depends = self.beta != 0 or needs_whole_batches(self.args) or self.aux_loss_enabled
        return "longest" if self.args.loss_type in MEAN_OF_ROWS and not depends else "first"

    def _packed(self, batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
        with self._timed("logprobs"):
            return super()._packed(batches)

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss = super()._compute_loss(model, inputs)
        if self.model.training and self.beta != 0 and is_known(self.args):
            if len(inputs["advantages"]):
                self._kl_parts = self._kl_parts + gradient_parts(inputs, self._logps, self.args)
            if self.accelerator.sync_gradients:
                self._log_kl_share()
        return loss

    def _log_kl_share(self) -> None:
        """Of an optimizer step: all its micro-batches, of all processes; L1, over log-probabilities."""
        penalty, policy = self.accelerator.reduce(self._kl_parts, reduction="sum").tolist()
        self._kl_parts = 0.0
        if penalty + policy > 0:
            self._metrics["train"]["gradient/kl_l1_share_logps"].append(penalty / (penalty + policy))

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
        values = {name: value.item() for name, value in diagnostics.items()}
        self._watch.look(values, kept_advantages.numel() // self.num_generations, self.state.global_step)
        for name, value in values.items():
            self._metrics["train"][name].append(value)

    @contextmanager
    def _timed(self, phase: str):
        start = now()
        try:
            yield
        finally:
            self._seconds[phase] += now() - start
