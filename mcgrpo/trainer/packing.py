"""The rows that an update needs, packed by length: functions of a batch's tensors, without TRL.

A batch is TRL's: a dictionary of tensors of (rows, ...) and of 0-dimensional ones. `mcgrpo.trainer.compact` uses these.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

MEAN_OF_ROWS = ("grpo", "sapo", "dr_grpo", "luspo")
"""Losses that are a mean over the rows of a micro-batch."""
SUM_OF_TOKENS = ("dapo", "cispo", "vespo")
"""Losses that are a sum, divided by a number that TRL counts over the whole generation batch."""
COMPLETION_COLUMNS = (
    "completion_ids",
    "completion_mask",
    "tool_mask",
    "old_per_token_logps",
    "ref_per_token_logps",
    "sampling_per_token_logps",
    "importance_sampling_ratio",
)

Batch = dict[str, Any]


def needs_whole_batches(args: Any) -> bool:
    """Whether the loss of a row depends on the other rows of its micro-batch, so that rows must stay where they are."""
    return (
        args.loss_type not in (*MEAN_OF_ROWS, *SUM_OF_TOKENS)
        or args.top_entropy_quantile < 1
        or args.entropy_coef != 0
        or args.use_adaptive_entropy
    )


def window(steps_per_generation: int, gradient_accumulation_steps: int) -> int:
    """How many consecutive micro-batches always share both a generation batch and an optimizer step."""
    if steps_per_generation % gradient_accumulation_steps == 0:
        return gradient_accumulation_steps
    return steps_per_generation if gradient_accumulation_steps % steps_per_generation == 0 else 1


def loss_mask(batch: Batch) -> Tensor:
    """Tokens that the loss is computed of, (rows, tokens)."""
    return batch["completion_mask"] * batch.get("tool_mask", 1)


def active(batch: Batch, drop_zeros: bool) -> Tensor:
    """Rows that the gradient depends on: (rows,) booleans. Without `drop_zeros`, all that have a token in the loss."""
    has_tokens = loss_mask(batch).any(dim=1)
    return has_tokens & (batch["advantages"] != 0) if drop_zeros else has_tokens


def choose(is_active: Tensor, lengths: Tensor, count: int) -> Tensor:
    """Indices of `count` rows: the active ones, then the shortest of the others; (rows,), (rows,) -> (count,)."""
    by_length = lengths.argsort(stable=True)
    return by_length[(~is_active[by_length]).byte().argsort(stable=True)][:count]


def divide(rows: Tensor, lengths: Tensor, size: int, parts: int, least: int = 1) -> list[Tensor]:
    """Split rows into `parts` of at most `size`, rows of similar length together, in as few parts as hold them.

    The other parts are empty and come first: the gradients of an optimizer step are synchronised with its last part.
    At least `least` parts have a row. Within a part rows keep their order.
    """
    filled = max(-(-len(rows) // size), least)
    by_length = rows[lengths[rows].argsort(stable=True)]
    return [rows[:0]] * (parts - filled) + [part.sort().values for part in by_length.tensor_split(filled)]


def select(batch: Batch, rows: Tensor) -> Batch:
    """The given rows of every tensor that has rows."""
    size = len(batch["advantages"])
    return {
        name: value[rows] if torch.is_tensor(value) and value.dim() and len(value) == size else value
        for name, value in batch.items()
    }


def joined(batches: list[Batch]) -> Batch:
    """The rows of several micro-batches of one generation batch as one batch."""
    return {
        name: torch.cat([batch[name] for batch in batches]) if torch.is_tensor(value) and value.dim() else value
        for name, value in batches[0].items()
    }


def trim(batch: Batch, prompts: bool, multiple: int | None = None) -> Batch:
    """Without columns that are padding in every row: right of completions and, with `prompts`, left of prompts.

    Args:
        batch: tensors of (rows, columns), under TRL's names; at least one row.
        multiple: widths are multiples of it (TRL's `pad_to_multiple_of`).
    """

    def width(mask: Tensor) -> int:
        needed = max(int(mask.sum(dim=1).max()), 1)
        return min(-(-needed // (multiple or 1)) * (multiple or 1), mask.size(1))

    full, kept = batch["completion_mask"].size(1), width(batch["completion_mask"])
    cut = {
        name: batch[name][:, :kept]
        for name in COMPLETION_COLUMNS
        if torch.is_tensor(batch.get(name)) and batch[name].size(1) == full
    }
    if prompts:
        start = batch["prompt_mask"].size(1) - width(batch["prompt_mask"])
        cut |= {name: batch[name][:, start:] for name in ("prompt_ids", "prompt_mask")}
    return batch | cut


def lengths_of(batch: Batch) -> Tensor:
    """Tokens of each row, prompt and completion."""
    return batch["prompt_mask"].sum(dim=1) + batch["completion_mask"].sum(dim=1)


class Removable(NamedTuple):
    """The padding that a model's output does not depend on: right of completions, left of prompts."""

    right: bool
    left: bool


def removable_padding(config: Any) -> Removable:
    """Which padding can be removed before a model with this configuration.

    Removing either changes the width of the batch, by which some rotary embeddings scale. Removing the left one also
    changes absolute positions.
    """
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None)
    if not rope:
        return Removable(right=True, left=False)
    kinds = [each for each in rope.values() if isinstance(each, dict)] or [rope]
    by_width = any(each.get("rope_type") in ("dynamic", "longrope") for each in kinds)
    absolute = getattr(text, "attn_temperature_tuning", False) or any("llama_4_scaling_beta" in each for each in kinds)
    return Removable(right=not by_width, left=not by_width and not absolute)
