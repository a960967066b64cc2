"""Compact updates: what adds nothing to the gradient is not computed, and the rest is packed by length.

A row whose advantage is 0 adds exactly 0 to the policy gradient of every loss of TRL's, and so does a row without any
token in the loss. Without a term that needs them (a KL penalty, entropy, a router's load) such rows are left out of
log-probabilities, forward and backward pass, and the loss of what is left is scaled so that the gradient of the
optimizer step is the same, up to rounding. With a KL penalty every row with a token is computed.

Both ways the rows of one optimizer step are put into as few micro-batches as they fill, those of like length together,
and columns of padding alone are cut off. `bnpo` divides by the tokens of each micro-batch, and some terms look at a
micro-batch as a whole (`needs_whole_batches`): those trainings stay as TRL has them.
"""

from typing import Any

import torch
from accelerate.utils import DistributedType
from torch import Tensor

from mcgrpo.trainer.resume import ResumableTrainer

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
    """Whether the loss of a row depends on the other rows of its micro-batch, so that none may be moved or left out."""
    return (
        args.loss_type not in (*MEAN_OF_ROWS, *SUM_OF_TOKENS)
        or args.top_entropy_quantile < 1
        or args.entropy_coef != 0
        or args.use_adaptive_entropy
    )


def window(steps_per_generation: int, gradient_accumulation_steps: int) -> int:
    """How many micro-batches in sequence belong to one generation batch and one optimizer step, whatever the step."""
    if steps_per_generation % gradient_accumulation_steps == 0:
        return gradient_accumulation_steps
    return steps_per_generation if gradient_accumulation_steps % steps_per_generation == 0 else 1


def active(batch: Batch, drop_zeros: bool) -> Tensor:
    """Rows that the gradient depends on: (rows,) booleans. Without `drop_zeros`, all that have a token in the loss."""
    mask = batch["completion_mask"] * batch.get("tool_mask", 1)
    has_tokens = mask.any(dim=1)
    return has_tokens & (batch["advantages"] != 0) if drop_zeros else has_tokens


def choose(is_active: Tensor, lengths: Tensor, count: int) -> Tensor:
    """Indices of `count` rows: the active ones, and then the shortest of the others; (rows,), (rows,) -> (count,)."""
    by_length = lengths.argsort(stable=True)
    return by_length[(~is_active[by_length]).byte().argsort(stable=True)][:count]


def divide(rows: Tensor, lengths: Tensor, size: int, parts: int, least: int = 1) -> list[Tensor]:
    """Rows in `parts` of at most `size`, like lengths together: as few as hold them all, behind parts that are empty.

    At least `least` parts have a row.

    Within a part rows keep their order. The last part is never empty: with it the gradients of an optimizer step are
    shared between processes.
    """
    filled = max(-(-len(rows) // size), least)
    by_length = rows[lengths[rows].argsort(stable=True)]
    return [rows[:0]] * (parts - filled) + [part.sort().values for part in by_length.tensor_split(filled)]


def select(batch: Batch, rows: Tensor) -> Batch:
    """The given rows of everything that has a value per row."""
    size = len(batch["advantages"])
    return {
        name: value[rows] if torch.is_tensor(value) and value.dim() and len(value) == size else value
        for name, value in batch.items()
    }


def trim(batch: Batch, prompts: bool, multiple: int | None = None) -> Batch:
    """Without columns that are padding in every row: at the right of completions and, if wanted, the left of prompts.

    Args:
        batch: tensors of (rows, columns), named as TRL names them; at least one row.
        multiple: number of which widths are multiples (TRL's `pad_to_multiple_of`).
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


def sees_no_padding(config: Any) -> tuple[bool, bool]:
    """Whether a model computes the same without padding behind completions, and without padding before prompts.

    The one moves the width that some rotary embeddings scale by, the other absolute positions as well.
    """
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None)
    if not rope:
        return True, False
    kinds = [each for each in rope.values() if isinstance(each, dict)] or [rope]
    by_width = any(each.get("rope_type") in ("dynamic", "longrope") for each in kinds)
    by_place = getattr(text, "attn_temperature_tuning", False) or any("llama_4_scaling_beta" in each for each in kinds)
    return not by_width, not by_width and not by_place


class CompactTrainer(ResumableTrainer):
    """`GRPOTrainer` with compact updates, for subclasses whose arguments have `compact_updates`.

    Several processes compute as many rows each, in as many micro-batches: what they exchange within the loss asks for
    that, and each step lasts as long as the longest of them anyway. One with fewer active rows adds its shortest
    others.
    """

    _active: Tensor | None = None
    """While the rows to train on are being prepared: which of this process's rows are active."""
    _computed: Tensor | None = None
    """Of which of them log-probabilities have been computed."""
    _logps: Tensor | None = None
    """Log-probabilities of the micro-batch whose loss is computed, (rows, tokens), without a graph."""

    @property
    def packs(self) -> bool:
        """Whether rows may be moved between the micro-batches of an optimizer step."""
        return self.args.compact_updates and not needs_whole_batches(self.args) and not self.aux_loss_enabled

    @property
    def drops(self) -> bool:
        """Whether rows without an advantage are left out."""
        return self.packs and self.beta == 0

    def _trimmed(self, batch: Batch) -> Batch:
        """Without padding, as far as the model does not see it."""
        completions, prompts = sees_no_padding(self.accelerator.unwrap_model(self.model).config)
        return trim(batch, prompts, self.pad_to_multiple_of) if completions else batch

    def _most(self, counts: Tensor) -> Tensor:
        """The largest of each count over processes."""
        return self.accelerator.gather(counts.unsqueeze(0).to(self.accelerator.device)).max(dim=0).values

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        before = self._buffered_inputs
        inputs = super()._prepare_inputs(generation_batch)
        if self._buffered_inputs is before or not self.packs:
            return inputs
        self._buffered_inputs = self._packed(self._buffered_inputs)
        return self._buffered_inputs[self._step % self.args.steps_per_generation]

    def _packed(self, batches: list[Batch]) -> list[Batch]:
        """The micro-batches of a generation batch, each window of them packed; some may have no rows."""
        size = window(self.args.steps_per_generation, self.args.gradient_accumulation_steps)
        windows = [joined(batches[start : start + size]) for start in range(0, len(batches), size)]
        # DeepSpeed counts backward passes through its own engine: none may be left out
        least = size if self.accelerator.distributed_type == DistributedType.DEEPSPEED else 1
        is_active = [active(each, self.drops) for each in windows]
        counts = self._most(torch.stack([each.sum() for each in is_active]).clamp(min=least)).tolist()
        rows = len(batches[0]["advantages"])
        return [
            batch
            for each, mask, count in zip(windows, is_active, counts, strict=True)
            for batch in self._repacked(each, choose(mask, lengths_of(each), count), rows, size, least)
        ]

    def _repacked(self, batch: Batch, chosen: Tensor, size: int, parts: int, least: int) -> list[Batch]:
        found = []
        for rows in divide(chosen, lengths_of(batch), size, parts, least):
            part = select(batch, rows)
            if len(rows):
                part = self._trimmed(part)
            scale = len(rows) / size if self.args.loss_type in MEAN_OF_ROWS else 1.0
            found.append(part | {"loss_scale": scale})
        return found

    def _describe_ratios(self, batch: Batch) -> None:
        """Log vLLM's importance sampling ratios of the rows that were computed; TRL counts the others as 1."""
        ratios = batch.get("importance_sampling_ratio")
        if ratios is None or self._computed is None or self._computed.all():
            return
        mask = batch["completion_mask"] * batch.get("tool_mask", 1)
        computed = ratios[self._computed]
        found = computed.flatten() if ratios.size(1) == 1 else computed[mask[self._computed].bool()]
        if not len(found):
            found = ratios.new_zeros(1)
        for name, value in (("min", found.min()), ("mean", found.mean()), ("max", found.max())):
            of_all = getattr(self.accelerator.gather(value.unsqueeze(0)), name)().item()
            self._metrics["train"][f"sampling/importance_sampling_ratio/{name}"][-1] = of_all

    def _compute_loss(self, model: Any, inputs: Batch) -> Tensor:
        if len(inputs["advantages"]) == 0:
            return torch.zeros((), device=self.accelerator.device, requires_grad=True)
        return super()._compute_loss(model, inputs) * inputs.get("loss_scale", 1.0)

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Tensor, attention_mask: Tensor, logits_to_keep: int, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        compute = super()._get_per_token_logps_and_entropies
        if self._active is None or not self.packs:
            found = compute(model, input_ids, attention_mask, logits_to_keep, **kwargs)
            self._logps = found[0].detach()
            return found
        size = kwargs["batch_size"]
        parts = {"prompt": slice(None, -logits_to_keep), "completion": slice(-logits_to_keep, None)}
        batch = {f"{name}_ids": input_ids[:, part] for name, part in parts.items()}
        batch |= {f"{name}_mask": attention_mask[:, part] for name, part in parts.items()}
        lengths = attention_mask.sum(dim=1)
        wanted = self._active if self.drops else torch.ones_like(self._active)
        count = int(self._most(wanted.sum().clamp(min=1)))
        rows = choose(wanted, lengths, count)
        logps = torch.zeros(input_ids[:, -logits_to_keep:].shape, device=input_ids.device)
        self._computed = torch.isin(torch.arange(len(logps), device=rows.device), rows)
        logps[~self._computed] = torch.nan
        for part in divide(rows, lengths, size, -(-count // size)):
            short = self._trimmed({name: value[part] for name, value in batch.items()})
            ids, mask = (torch.cat([short[f"prompt_{of}"], short[f"completion_{of}"]], dim=1) for of in ("ids", "mask"))
            width = short["completion_ids"].size(1)
            logps[part, :width] = compute(model, ids, mask, width)[0].to(logps.dtype)
        return logps, None, None


def joined(batches: list[Batch]) -> Batch:
    """One batch of the rows of several that one generation batch was split into."""
    first = batches[0]
    return {
        name: torch.cat([batch[name] for batch in batches]) if torch.is_tensor(value) and value.dim() else value
        for name, value in first.items()
    }
