"""A rough estimate of the memory that a training takes on each GPU (or of a process, on a CPU).

With P parameters in n processes of R rows of C completion tokens each, in bytes:

    weights     4 P      fp32, which AdamW needs at small learning rates
    gradients   4 P      and as much again for DDP's buckets, where n > 1 and nothing is sharded
    AdamW       8 P      two fp32 moments
    reference   4 P      the model that the KL term looks at: with beta > 0 and without LoRA
    activations 3 b R C V                     logits: output, its copy over the temperature, its gradient; vocabulary V
              + b R (C + 512) H L   x 1 or 16 hidden size H, L layers: their inputs alone with gradient checkpointing

with b = 2 under bf16, else 4. The prompt's 512 tokens, the 3 and the 16 are rules of thumb; fragmentation, CUDA's own
context (a few hundred MB) and longer prompts come on top: an estimate, good for "half the card" or "twice the card".

`sharding` (zero3, fsdp) divides all but the activations by n; ZeRO adds a bf16 copy of weights and gradients (4 P), and
holds the reference in bf16. `lora` keeps gradients and AdamW for the adapters alone, of at most 2 r P / H parameters,
as if all weights were H x H. A colocated vLLM takes the share `vllm_gpu_memory_utilization` of the whole card for a
second copy of the weights and its cache; without vLLM the cache of generation is not counted. Nor is evaluation, which
has the card to itself.
"""

from dataclasses import dataclass
from typing import Any

from mcgrpo.commands.forecast.batches import Batches
from mcgrpo.commands.forecast.sizes import Model
from mcgrpo.records import Run

GIB = 2**30
LORA_RANK = 8
"""PEFT's default of `r`."""
PROMPT_TOKENS = 512
COMPLETION_TOKENS = 256
"""TRL's default of `max_completion_length`."""
LOGIT_COPIES = 3
KEPT_PER_LAYER = 16
VLLM_SHARE = 0.3
"""TRL's default of `vllm_gpu_memory_utilization`."""


@dataclass(frozen=True)
class Memory:
    """Bytes on each device.

    Args:
        state: weights, gradients, optimizer and reference: counted, not estimated, without LoRA.
        activations: 0 where the model's shape is not known.
        vllm_share: of the whole device.
    """

    state: float
    activations: float
    vllm_share: float

    @property
    def smallest_device(self) -> float:
        """Bytes of the smallest device that this fits on."""
        return (self.state + self.activations) / (1 - self.vllm_share)

    @property
    def smallest_for_state(self) -> float:
        """The same without activations, which have no estimate to blame where it does not fit."""
        return self.state / (1 - self.vllm_share)


def memory(run: Run, model: Model, arithmetic: Batches) -> Memory:
    """The estimate for a trained run; see the module for what is counted."""
    colocated = run.training.get("use_vllm", False) and run.training.get("vllm_mode", "colocate") == "colocate"
    return Memory(
        state=_state(run, model, arithmetic.processes),
        activations=_activations(run, model, arithmetic.rows),
        vllm_share=run.training.get("vllm_gpu_memory_utilization", VLLM_SHARE) if colocated else 0.0,
    )


def _state(run: Run, model: Model, processes: int) -> float:
    lora, sharding = run.training.get("lora"), run.training.get("sharding", "none")
    trained = _adapters(lora, model) if lora else model.parameters
    weights = model.parameters + (trained if lora else 0)
    buckets = 4 if processes > 1 and sharding == "none" else 0
    copies = 4 if sharding == "zero3" else 0
    reference = (2 if copies else 4) * model.parameters if run.training.get("beta", 0.0) and not lora else 0
    total = 4 * weights + (4 + 8 + buckets + copies) * trained + reference
    return total if sharding == "none" else total / processes


def _adapters(lora: dict[str, Any], model: Model) -> float:
    rank = lora.get("r", LORA_RANK)
    return min(2 * rank / model.hidden_size, 1) * model.parameters if model.hidden_size else 0.0


def _activations(run: Run, model: Model, rows: int) -> float:
    width = 2 if run.training.get("bf16") else 4
    completion = run.training.get("max_completion_length", COMPLETION_TOKENS)
    logits = LOGIT_COPIES * width * rows * completion * model.vocabulary
    kept = 1 if run.training.get("gradient_checkpointing") else KEPT_PER_LAYER
    return logits + kept * width * rows * (completion + PROMPT_TOKENS) * model.hidden_size * model.layers
