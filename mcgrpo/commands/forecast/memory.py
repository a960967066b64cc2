"""A rough estimate of the memory that a training takes on each GPU (or in a process, on a CPU).

With P parameters in n processes of R rows of C completion tokens each, in bytes:

    weights     4 P      fp32, which AdamW needs at small learning rates
    gradients   4 P      and as much again for DDP's buckets, if n > 1 and nothing is sharded
    AdamW       8 P      two fp32 moments
    reference   4 P      the model of the KL term: with beta > 0 and without LoRA
    activations b R (C + 512) H L   x 1 or 16 hidden size H, L layers: only their inputs with gradient checkpointing
    LM head     b min(R (C + 512), 4096) min(V, 32768)    a tile of the logits; vocabulary V
              + 4 H (V + R (C + 512))                     fp32 gradients of the head and of its input

with b = 2 under bf16, else 4. Before version 1.14, TRL holds all logits: 3 b R C V for them, their copy over the
temperature and their gradient. The prompt's 512 tokens, the 3 and the 16 are rules of thumb. Fragmentation, CUDA's own
context (a few hundred MB) and longer prompts come on top.

`sharding` (zero3, fsdp) divides all but the activations by n. With `lora` only the weights count: adapters are small.
A colocated vLLM takes the share `vllm_gpu_memory_utilization` of the whole GPU; without vLLM, the cache of generation
is not counted. Neither is evaluation, which has the GPU to itself.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from packaging.version import Version

from mcgrpo.commands.forecast.batches import Batches
from mcgrpo.commands.forecast.sizes import Model
from mcgrpo.train.trl_arguments import STUDY

GIB = 2**30
WEIGHTS, GRADIENTS, ADAMW = 4, 4, 8
"""Bytes of a parameter."""
PROMPT_TOKENS = 512
LOGIT_COPIES, KEPT_PER_LAYER = 3, 16
TILE = 4096, 32768
"""Tokens and vocabulary of the logits that TRL's fused LM head holds at a time."""


class Memory(NamedTuple):
    """Bytes on each device.

    Args:
        state: weights, gradients, optimizer and reference.
        activations: 0 if the model's shape is unknown.
        vllm_share: share of the whole device.
    """

    state: float
    activations: float
    vllm_share: float

    @property
    def device(self) -> float:
        """Bytes of the smallest device that this fits on."""
        return (self.state + self.activations) / (1 - self.vllm_share)


def memory(training: dict[str, Any], model: Model, batches: Batches) -> Memory:
    """The estimate for the `training` of a run; the module's docstring has the formula."""
    colocated = training.get("use_vllm", False) and training.get("vllm_mode", "colocate") == "colocate"
    share = training.get("vllm_gpu_memory_utilization", STUDY["vllm_gpu_memory_utilization"]) if colocated else 0.0
    return Memory(_state(training, model, batches.processes), _activations(training, model, batches.rows), share)


def _state(training: dict[str, Any], model: Model, processes: int) -> float:
    sharded = training.get("sharding", "none") != "none"
    reference = WEIGHTS if training.get("beta", 0.0) else 0
    buckets = GRADIENTS if processes > 1 and not sharded else 0
    trained = 0 if training.get("lora") else GRADIENTS + ADAMW + reference + buckets
    total = (WEIGHTS + trained) * model.parameters
    return total / processes if sharded else total


def _activations(training: dict[str, Any], model: Model, rows: int) -> float:
    width = 2 if training.get("bf16") else 4
    completion = training.get("max_completion_length", STUDY["max_completion_length"])
    tokens = rows * (completion + PROMPT_TOKENS)
    kept = 1 if training.get("gradient_checkpointing") else KEPT_PER_LAYER
    layers = kept * width * tokens * model.hidden_size * model.layers
    if _holds_logits():
        return layers + LOGIT_COPIES * width * rows * completion * model.vocabulary
    tile = width * min(tokens, TILE[0]) * min(model.vocabulary, TILE[1])
    return layers + tile + GRADIENTS * model.hidden_size * (tokens + (0 if training.get("lora") else model.vocabulary))


def _holds_logits() -> bool:
    try:
        return Version(version("trl")) < Version("1.14")
    except PackageNotFoundError:
        return False
