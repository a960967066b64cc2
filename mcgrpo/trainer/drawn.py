"""A generation batch: its rollouts, its estimate, and what is shared while it is trained on."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor


class Rollouts(NamedTuple):
    """What `GRPOTrainer._generate` returns: in each field a value per row, or none."""

    prompt_ids: list
    completion_ids: list
    tool_mask: list | None
    completions: list
    logprobs: list | None
    extra_fields: dict
    images: list | None
    tool_images: list

    @property
    def lengths(self) -> list[int]:
        """Tokens that the model drew in each row, without those of tools."""
        return [len(ids) for ids in self.completion_ids] if self.tool_mask is None else list(map(sum, self.tool_mask))

    def pick(self, rows: Sequence[int]) -> "Rollouts":
        """The given rows of every field."""

        def pick(values: Any) -> Any:
            is_per_row = isinstance(values, list) and len(values) == len(self.completion_ids)
            return [values[row] for row in rows] if is_per_row else values

        extra_fields = {name: pick(values) for name, values in self.extra_fields.items()}
        return Rollouts(*map(pick, self))._replace(extra_fields=extra_fields)


def expand(inputs: Sequence[dict[str, Any]], size: int, drawn: int) -> list[dict[str, Any]]:
    """Each prompt's `size` rows -> `drawn` rows, prompt by prompt, none of which shares an object with another.

    Raises:
        ValueError: for rows that do not divide into groups, and for a group of more than one prompt.
    """
    if len(inputs) % size:
        raise ValueError(f"{len(inputs)} rows on this process do not divide into groups of {size}")
    groups = [inputs[start : start + size] for start in range(0, len(inputs), size)]
    for group in groups:
        prompts = [row.get("prompt", repr(row)) for row in group]  # an environment may give the prompt
        if any(prompt != prompts[0] for prompt in prompts):
            raise ValueError(f"a group of {size} rows holds more than one prompt: {prompts}")
    return [copy.deepcopy(group[0]) for group in groups for _ in range(drawn)]


class GeneratedError(Exception):
    """Raised by `_generate` to leave TRL's method once environments and tools are set up; has prompts and rollouts."""

    def __init__(self, prompts: list, rollouts: Rollouts):
        super().__init__()
        self.prompts, self.rollouts = prompts, rollouts


class Drawn(NamedTuple):
    """A generation batch with its estimate: what `MCGRPOTrainer.observers` are called with.

    `inputs` and `rollouts` are the rows of this process, group after group. The tensors are of all processes, in the
    order of their ranks: `rewards_per_func` is (rows, reward functions), the others are (groups, drawn). Rewards are
    NaN where a rollout could not be scored, lengths are in tokens.
    """

    inputs: list[dict[str, Any]]
    rollouts: Rollouts
    rewards_per_func: Tensor
    rewards: Tensor
    lengths: Tensor
    advantages: Tensor
    keep: Tensor


@dataclass
class BatchState:
    """All that one override of `MCGRPOTrainer` leaves for another, about the batch it is working on.

    While TRL draws the rollouts of a generation batch, from `_draw`:

    - `draws`: read by `_generate`, which then raises `GeneratedError`.

    While TRL prepares the kept rows of a generation batch, from `_generate_and_score_completions`:

    - `rollouts`: read by `_generate`, this process's kept rows;
    - `rewards_per_func`: read by `_calculate_rewards`, the kept rows of all processes x reward functions;
    - `active`: read by `_get_per_token_logps_and_entropies`, booleans: this process's kept rows with an advantage.

    Until the next generation batch, from `_get_per_token_logps_and_entropies`:

    - `computed`: booleans, this process's kept rows whose log-probabilities were computed; None for all of them.

    During one micro-batch, from `_get_per_token_logps_and_entropies` to `_compute_loss`:

    - `logps`: (rows, tokens) log-probabilities, without a graph.

    During one optimizer step, from one `_compute_loss` to the next:

    - `gradient_parts`: (2,) sums over this process's micro-batches, see `mcgrpo.trainer.kl_share`.
    """

    draws: bool = False
    rollouts: Rollouts | None = None
    rewards_per_func: Tensor | None = None
    active: Tensor | None = None
    computed: Tensor | None = None
    logps: Tensor | None = None
    gradient_parts: Tensor | float = 0.0

    @contextmanager
    def staged(self, rollouts: Rollouts, rewards_per_func: Tensor, active: Tensor) -> Iterator[None]:
        """Within it, TRL is handed these rollouts and rewards instead of drawing and scoring anew."""
        self.rollouts, self.rewards_per_func, self.active, self.computed = rollouts, rewards_per_func, active, None
        try:
            yield
        finally:
            self.rollouts = self.rewards_per_func = self.active = None
