"""Compact updates: rows that do not change the gradient are not computed, and the others are packed by length.

A row with an advantage of 0 adds exactly 0 to the policy gradient of each of TRL's losses, and so does a row without a
token in the loss. Such rows are left out of log-probabilities, forward and backward pass, unless another term needs
them (a KL penalty, entropy, a router's load). The loss of the others is scaled so that the gradient of the optimizer
step stays the same, up to rounding. With a KL penalty every row with a token is computed.

In both cases the rows of an optimizer step are put into as few micro-batches as they fill, rows of similar length
together, and columns of padding are cut off. `bnpo` divides by the tokens of each micro-batch, and some terms look at a
micro-batch as a whole (`needs_whole_batches`): these trainings stay as in TRL.

On a CPU, TRL projects every token on the vocabulary, those of the prompt and padding too. Here only the tokens of
completions are, as TRL does on a GPU.
"""

from typing import Any
from unittest.mock import patch

import torch
import trl.trainer.utils
from accelerate.utils import DistributedType
from torch import Tensor

from mcgrpo.trainer import packing
from mcgrpo.trainer.drawn import BatchState
from mcgrpo.trainer.packing import Batch
from mcgrpo.trainer.resume import ResumableTrainer

IN_LOSS_ONLY = "_use_triton"
"""Of `trl.trainer.utils` since TRL 1.16: whether only the tokens in the loss are projected on a device."""


class CompactTrainer(ResumableTrainer):
    """`GRPOTrainer` with compact updates, for subclasses whose arguments have `compact_updates`.

    The only changes w.r.t. `GRPOTrainer`: `_prepare_inputs` packs the micro-batches of a generation batch,
    `_compute_loss` scales the loss of a packed one, and `_get_per_token_logps_and_entropies` computes the active rows.

    All processes compute the same number of rows in the same number of micro-batches, since they exchange numbers
    within the loss. A process with fewer active rows adds the shortest of its others.
    """

    _batch = BatchState()  # of a trainer whose __init__ was not run, in TRL's tests of single methods

    def __init__(self, *args: Any, **kwargs: Any):
        self._batch = BatchState()
        super().__init__(*args, **kwargs)

    @property
    def packs(self) -> bool:
        """Whether rows may be moved between the micro-batches of an optimizer step."""
        return self.args.compact_updates and not packing.needs_whole_batches(self.args) and not self.aux_loss_enabled

    @property
    def drops(self) -> bool:
        """Whether rows without an advantage are left out."""
        return self.packs and self.beta == 0

    def _trimmed(self, batch: Batch) -> Batch:
        padding = packing.removable_padding(self.accelerator.unwrap_model(self.model).config)
        return packing.trim(batch, padding.left, self.pad_to_multiple_of) if padding.right else batch

    def _max_over_processes(self, counts: Tensor) -> Tensor:
        return self.accelerator.gather(counts.unsqueeze(0).to(self.accelerator.device)).max(dim=0).values

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        before = self._buffered_inputs
        inputs = super()._prepare_inputs(generation_batch)
        if self._buffered_inputs is before or not self.packs:
            return inputs
        self._buffered_inputs = self._packed(self._buffered_inputs)
        return self._buffered_inputs[self._step % self.args.steps_per_generation]

    def _packed(self, batches: list[Batch]) -> list[Batch]:
        """The micro-batches of a generation batch, packed within each window; some may have no rows."""
        size = packing.window(self.args.steps_per_generation, self.args.gradient_accumulation_steps)
        windows = [packing.joined(batches[start : start + size]) for start in range(0, len(batches), size)]
        # DeepSpeed counts backward passes by itself: none may be left out
        least = size if self.accelerator.distributed_type == DistributedType.DEEPSPEED else 1
        is_active = [packing.active(each, self.drops) for each in windows]
        counts = self._max_over_processes(torch.stack([each.sum() for each in is_active]).clamp(min=least)).tolist()
        rows = len(batches[0]["advantages"])
        return [
            batch
            for each, mask, count in zip(windows, is_active, counts, strict=True)
            for batch in self._repacked(each, packing.choose(mask, packing.lengths_of(each), count), rows, size, least)
        ]

    def _repacked(self, batch: Batch, chosen: Tensor, size: int, parts: int, least: int) -> list[Batch]:
        packed = []
        for rows in packing.divide(chosen, packing.lengths_of(batch), size, parts, least):
            part = packing.select(batch, rows)
            if len(rows):
                part = self._trimmed(part)
            scale = len(rows) / size if self.args.loss_type in packing.MEAN_OF_ROWS else 1.0
            packed.append(part | {"loss_scale": scale})
        return packed

    def _compute_loss(self, model: Any, inputs: Batch) -> Tensor:
        if len(inputs["advantages"]) == 0:
            return torch.zeros((), device=self.accelerator.device, requires_grad=True)
        return super()._compute_loss(model, inputs) * inputs.get("loss_scale", 1.0)

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: Tensor,
        attention_mask: Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,  # TRL gives it by position before 1.14
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        compute = self._compute_logps
        is_active = self._batch.active
        if is_active is None or not self.packs:
            logps, *others = compute(model, input_ids, attention_mask, logits_to_keep, batch_size=batch_size, **kwargs)
            self._batch.logps = logps.detach()
            return logps, *others
        parts = {"prompt": slice(None, -logits_to_keep), "completion": slice(-logits_to_keep, None)}
        batch = {f"{name}_ids": input_ids[:, part] for name, part in parts.items()}
        batch |= {f"{name}_mask": attention_mask[:, part] for name, part in parts.items()}
        lengths = attention_mask.sum(dim=1)
        wanted = is_active if self.drops else torch.ones_like(is_active)
        count = int(self._max_over_processes(wanted.sum().clamp(min=1)))
        rows = packing.choose(wanted, lengths, count)
        logps = torch.zeros(input_ids[:, -logits_to_keep:].shape, device=input_ids.device)
        self._batch.computed = torch.isin(torch.arange(len(logps), device=rows.device), rows)
        logps[~self._batch.computed] = torch.nan
        for part in packing.divide(rows, lengths, batch_size, -(-count // batch_size)):
            short = self._trimmed({name: value[part] for name, value in batch.items()})
            ids, mask = (torch.cat([short[f"prompt_{of}"], short[f"completion_{of}"]], dim=1) for of in ("ids", "mask"))
            width = short["completion_ids"].size(1)
            logps[part, :width] = compute(model, ids, mask, width)[0].to(logps.dtype)
        return logps, None, None

    def _compute_logps(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """TRL's own `_get_per_token_logps_and_entropies`."""
        compute = super()._get_per_token_logps_and_entropies
        if not self.packs or self.accelerator.device.type != "cpu" or not hasattr(trl.trainer.utils, IN_LOSS_ONLY):
            return compute(*args, **kwargs)
        with patch.object(trl.trainer.utils, IN_LOSS_ONLY, lambda device: True):
            return compute(*args, **kwargs)

    def _finish_old_logps(self, batch: Batch) -> float:
        """Replace the NaN of rows that were not computed, and log vLLM's importance sampling ratios without these rows.

        Returns:
            The share of the ratios that are 0: of rows, or tokens, that TRL has masked out of the policy gradient.
        """
        if "old_per_token_logps" not in batch:
            return 0.0
        batch["old_per_token_logps"].nan_to_num_(nan=0.0)
        if (ratios := batch.get("importance_sampling_ratio")) is None:
            return 0.0
        masks = packing.loss_mask(batch).bool()
        if (computed := self._batch.computed) is not None:
            ratios, masks = ratios[computed], masks[computed]
        return self._log_ratios(ratios.flatten() if ratios.size(1) == 1 else ratios[masks])

    def _log_ratios(self, ratios: Tensor) -> float:
        """In place of TRL's values, which have a 1 for each row that was not computed; and the share that is 0."""
        metrics, of = self._metrics["train"], "sampling/importance_sampling_ratio"
        counts = torch.stack([(ratios == 0).sum(), torch.tensor(len(ratios), device=ratios.device)])
        zero, count = self.accelerator.gather(counts.unsqueeze(0)).sum(dim=0).tolist()
        metrics[f"{of}/frac_zero"].append(share := zero / max(count, 1))
        if not len(ratios):
            ratios = ratios.new_zeros(1)
        for name in ("min", "mean", "max"):
            local = getattr(ratios, name)().unsqueeze(0)
            metrics[f"{of}/{name}"][-1] = getattr(self.accelerator.gather(local), name)().item()
        return share
