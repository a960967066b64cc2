"""What a training takes of each of its GPUs, of its machine's memory and of the disk, from its model's shape.

A trained weight takes 16 bytes with AdamW: fp32 weight, gradient, and two moments. tests/study/test_memory.py compares
it with measurements; docs/gpu.md says what is not counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcgrpo.records import Run
from mcgrpo.study.context import completion_length
from mcgrpo.study.estimators import drawn
from mcgrpo.study.settings import selects_checkpoint

Shape = Mapping[str, Any]
"""A model's config.json (`mcgrpo.study.model_config`)."""

GIB = 2**30
PROMPT_TOKENS = 512
"""Of a prompt, assumed without `max_prompt_length`: GSM8K's are shorter, and MATH's but for about one in a hundred."""
LOGITS_CHUNK = 4096 * 32768
"""Logits that TRL has in memory at a time (`trl.kernels.chunked_logprob`, since TRL 1.14)."""
OUTSIDE = 1 * GIB
"""Of CUDA's context, NCCL and libraries, beside what torch and vLLM allocate."""
OF_PROCESS = 6 * GIB
"""Of the machine's memory in each process beside models: libraries, CUDA's context, vLLM. Assumed, not measured."""
DEFAULT_SHARE = 0.3
"""TRL's `vllm_gpu_memory_utilization`."""
ADAPTED = ("q_proj", "v_proj")
"""PEFT's `target_modules` for these architectures."""
NEEDED = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size",
    "vocab_size",
)  # fmt: skip
ARCHITECTURES = ("qwen2", "qwen3", "llama")


@dataclass(frozen=True)
class Memory:
    """Bytes on each GPU, apart from `host`.

    Args:
        weights: in fp32; of LoRA, the model's and the adapters'.
        optimizer: AdamW's two moments.
        reference: the model that `beta` > 0 compares with.
        working: at most at any time beside these: gradients, activations, logits, gathered weights.
        vllm: the share of the card that is vLLM's, 0 to 1; 0 without vLLM in the training's process.
        engine: what vLLM needs at least: weights in bf16, and the cache of one sequence.
        sleeps: whether vLLM gives its share back during updates.
        host: bytes of the machine's own memory at the start, in all processes together; later they take less.
    """

    weights: float
    optimizer: float
    reference: float
    working: float
    vllm: float = 0.0
    engine: float = 0.0
    sleeps: bool = False
    host: float = 0.0

    @property
    def held(self) -> float:
        """All through the training, vLLM aside."""
        return self.weights + self.optimizer + self.reference + OUTSIDE

    def total(self, card: float) -> float:
        """Of a card with this many bytes."""
        share = self.vllm * card
        return self.held + (max(self.working, share) if self.sleeps else self.working + share)

    @property
    def smallest_card(self) -> float:
        """The bytes of the smallest card that holds it; infinite if vLLM's share leaves nothing."""
        rest = max(1 - self.vllm, 1e-9)
        if self.sleeps:
            return max(self.held + self.working, self.held / rest, self._for_engine)
        return max((self.held + self.working) / rest, self._for_engine)

    @property
    def _for_engine(self) -> float:
        return self.engine / self.vllm if self.vllm else 0.0


def is_known(shape: Shape) -> bool:
    """Whether a model's memory can be computed: a dense decoder of a known architecture, with all of its sizes."""
    experts = any("experts" in key and shape[key] for key in shape)
    return shape.get("model_type", ARCHITECTURES[0]) in ARCHITECTURES and not experts and all(map(shape.get, NEEDED))


def matrices(shape: Shape) -> dict[str, int]:
    """Linear module of a decoder layer -> its weights, without biases; the sizes of both sides are in `_sides`."""
    return {name: into * out for name, (into, out) in _sides(shape).items()}


def _sides(shape: Shape) -> dict[str, tuple[int, int]]:
    hidden, inner = shape["hidden_size"], shape["intermediate_size"]
    queries, keys = (shape[f"num_{of}_heads"] * shape["head_dim"] for of in ("attention", "key_value"))
    attention = {"q_proj": (hidden, queries), "k_proj": (hidden, keys), "v_proj": (hidden, keys)}
    return attention | {
        "o_proj": (queries, hidden),
        "gate_proj": (hidden, inner),
        "up_proj": (hidden, inner),
        "down_proj": (inner, hidden),
    }


def parameters(shape: Shape) -> int:
    """All weights of a model of `ARCHITECTURES`, tied ones once.

    They are exact where the shape has its `model_type`; else biases and norms of heads are left out, at most 0.01 %.
    """
    sides, kind = _sides(shape), shape.get("model_type")
    biased = ["q_proj", "k_proj", "v_proj"] if kind == "qwen2" else []
    if shape.get("attention_bias"):
        biased = ["q_proj", "k_proj", "v_proj", "o_proj"]
    biased += ["gate_proj", "up_proj", "down_proj"] if shape.get("mlp_bias") else []
    norms = 2 * shape["hidden_size"] + (2 * shape["head_dim"] if kind == "qwen3" else 0)
    layer = sum(matrices(shape).values()) + sum(sides[name][1] for name in biased) + norms
    tables = 1 if shape.get("tie_word_embeddings") else 2
    return shape["num_hidden_layers"] * layer + shape["hidden_size"] + tables * vocabulary(shape)


def vocabulary(shape: Shape) -> int:
    """The weights of the embedding, which are those of the output layer where both are tied."""
    return shape["vocab_size"] * shape["hidden_size"]


def adapter_parameters(shape: Shape, lora: Mapping[str, Any]) -> int:
    """The weights of LoRA's adapters: `r` rows and columns at each adapted matrix."""
    sides, wanted = _sides(shape), lora.get("target_modules") or ADAPTED
    names = sides if wanted == "all-linear" else [wanted] if isinstance(wanted, str) else wanted
    return shape["num_hidden_layers"] * lora["r"] * sum(sum(sides[name]) for name in names if name in sides)


def memory(run: Run, gpus: int, shape: Shape) -> Memory:
    """The memory of a training on each of its GPUs, and of its machine.

    Rows have all tokens they may have, and none is left out of the update, as `compact_updates` does: it is a bound.

    Args:
        run: a training.
        gpus: that it has.
        shape: of its model; `is_known`.
    """
    training, lora = run.training, run.training.get("lora")
    every, trained = parameters(shape), _trained(training, shape)
    is_sharded = training.get("sharding") == "fsdp"
    shards = gpus if is_sharded else 1
    has_reference = bool(training.get("beta")) and not lora
    served = not training.get("use_vllm") or training.get("vllm_mode") == "server"
    return Memory(
        weights=4 * (every + (trained if lora else 0)) / shards,
        optimizer=8 * trained / shards,
        reference=4 * every / shards if has_reference else 0.0,
        working=max(_update(run, gpus, shape, trained), _scoring(run, gpus, shape, has_reference)),
        vllm=0.0 if served else training.get("vllm_gpu_memory_utilization", DEFAULT_SHARE),
        engine=0.0 if served else _engine(training, shape, every),
        sleeps=bool(training.get("vllm_enable_sleep_mode")),
        # Every process reads whole models in fp32. Sharded, the policy stays where it was read until `train`, so that
        # the reference is beside it; else transformers moves it to the GPU before TRL reads the reference.
        host=gpus * (4 * every * (2 if is_sharded and has_reference else 1) + OF_PROCESS),
    )


def _trained(training: Mapping[str, Any], shape: Shape) -> int:
    return adapter_parameters(shape, lora) if (lora := training.get("lora")) else parameters(shape)


def disk(run: Run, shape: Shape, is_saved: bool, models: int = 1) -> tuple[float, float]:
    """Bytes of disk that trainings one after the other hold at most, and of a checkpoint (0 if none is written).

    That is two checkpoints, as one is removed when the next is complete; a third where the best is kept; and the fp32
    weights of trained models, until they are evaluated.

    Args:
        run: a training.
        shape: of its model; `is_known`.
        is_saved: whether it can be resumed from its checkpoints (`save_steps`).
        models: that are evaluated at a time (`mcgrpo.study.plan.evaluated_at_a_time`).
    """
    is_sharded = run.training.get("sharding") == "fsdp"
    number = 3 if selects_checkpoint(run) else 2 if is_saved else 0
    # Sharded weights are saved twice, for use and to resume, and never alone (`mcgrpo.train.arguments.saving`).
    of_each = 16 if is_sharded else 12 if is_saved else 4
    checkpoint = of_each * _trained(run.training, shape) if number else 0.0
    return number * checkpoint + 4 * models * parameters(shape), checkpoint


def row_tokens(training: Mapping[str, Any], shape: Shape) -> int:
    """Of a prompt with its completion, at most."""
    prompt = training.get("max_prompt_length", PROMPT_TOKENS)
    wanted = prompt + completion_length(training)
    limits = (training.get("vllm_max_model_length"), shape.get("max_position_embeddings"))
    return min(wanted, *[each or wanted for each in limits])


def _widths(training: Mapping[str, Any], shape: Shape) -> tuple[float, float]:
    """Bytes of a token in a layer: kept for its backward pass, and beside these for the time of that pass.

    In bf16 under autocast, whose norms compute in fp32; all of it is twice that in fp32.
    """
    hidden, inner = shape["hidden_size"], shape["intermediate_size"]
    queries, keys = (shape[f"num_{of}_heads"] * shape["head_dim"] for of in ("attention", "key_value"))
    scale = 1 if training.get("bf16") else 2
    return scale * (22 * hidden + 14 * queries + 10 * keys + 8 * inner), scale * (6 * hidden + 4 * inner)


def _masks(training: Mapping[str, Any], shape: Shape, layers: int = 1) -> float:
    """Of attention where rows are padded: a byte for each pair of tokens, and SDPA's bias of it in each layer.

    transformers.masking_utils.sdpa_mask; torch's kernels take no Boolean mask, and keep the bias for the backward pass.
    """
    if training.get("attn_implementation") == "flash_attention_2":
        return 0.0
    pairs = training["per_device_train_batch_size"] * row_tokens(training, shape) ** 2
    return pairs * (1 + layers * (2 if training.get("bf16") else 4))


def _update(run: Run, gpus: int, shape: Shape, trained: int) -> float:
    """Gradients grow while activations shrink: the larger of both ends of a backward pass."""
    training, layers, hidden = run.training, shape["num_hidden_layers"], shape["hidden_size"]
    is_sharded, bf16 = training.get("sharding") == "fsdp", training.get("bf16")
    tokens = training["per_device_train_batch_size"] * row_tokens(training, shape)
    kept, beside = _widths(training, shape)
    of_layer = hidden * (2 if is_sharded and bf16 else 4)  # autocast leaves what passes from layer to layer in fp32
    casts = 0.0 if is_sharded else _casts(training, shape)
    if training.get("gradient_checkpointing"):
        # What is kept has a layer's input in fp32, which is checkpointed already (or in bf16, of which none is kept).
        of_one = tokens * (kept - 4 * hidden + beside) + _masks(training, shape)
        # Before the backward pass, which casts again: autocast's copies of all layers, but not of frozen weights.
        start = tokens * layers * of_layer + max(of_one, 0 if "lora" in training else casts)
    else:
        start = tokens * (layers * kept + beside) + _masks(training, shape, layers) + casts
    start += LOGITS_CHUNK * (2 if bf16 else 4)
    table = 0 if "lora" in training else 4 * vocabulary(shape)  # the gradient of the output layer comes first
    gradients = 4 * trained / (gpus if is_sharded else 1)
    gathered = _gathered(training, shape) if is_sharded else 0.0
    # The gradient of a tied embedding is the sum of two, for which there are three for a moment.
    end = gradients + (2 * table if shape.get("tie_word_embeddings") else 0)
    accumulates = training.get("gradient_accumulation_steps", 1) > 1
    start += table + (gradients if accumulates else 0)
    buckets = 4 * trained if gpus > 1 and not is_sharded else 0  # DDP's copy of the gradients
    return max(start, end) + gathered + buckets


def _gathered(training: Mapping[str, Any], shape: Shape) -> float:
    """FSDP2: two layers whole, and the output layer, which stays; of one, the gradient before it is divided."""
    layer, table, size = sum(matrices(shape).values()), vocabulary(shape), 2 if training.get("bf16") else 4
    return size * (2 * layer + table) + (size + 4) * max(layer, table)


def _scoring(run: Run, gpus: int, shape: Shape, has_reference: bool) -> float:
    """Log-probabilities without gradients; TRL gathers a sharded reference model whole, its pieces beside the copy.

    The policy's come first, and no backward pass follows, after which its output layer would be divided again.
    """
    training, size = run.training, 2 if run.training.get("bf16") else 4
    tokens = training["per_device_train_batch_size"] * row_tokens(training, shape)
    passing = tokens * (4 * shape["hidden_size"] + _widths(training, shape)[1]) + LOGITS_CHUNK * size
    passing += _masks(training, shape)
    if training.get("sharding") == "fsdp":
        reference = size * (parameters(shape) * (2 + 1 / gpus) + vocabulary(shape))
        return passing + (reference if has_reference else _gathered(training, shape))
    generated = _cache(shape, row_tokens(training, shape), 4) * _rows_drawn(run)
    if training.get("bf16") and "lora" not in training:
        generated += _casts(training, shape) + 2 * vocabulary(shape)
    return max(passing, 0 if training.get("use_vllm") else generated)


def _casts(training: Mapping[str, Any], shape: Shape) -> float:
    """Autocast's copies in bf16 of the weights of all layers; TRL casts the output layer piece by piece."""
    return 2.0 * shape["num_hidden_layers"] * sum(matrices(shape).values()) if training.get("bf16") else 0.0


def _rows_drawn(run: Run) -> float:
    steps = run.training.get("steps_per_generation", run.training.get("gradient_accumulation_steps", 1))
    return run.training["per_device_train_batch_size"] * steps * drawn(run) / run.num_generations


def _cache(shape: Shape, tokens: int, size: int = 2) -> float:
    """Keys and values of a sequence, in that many bytes a number: 2 in vLLM, 4 in transformers, under autocast too."""
    return 2 * size * shape["num_hidden_layers"] * shape["num_key_value_heads"] * shape["head_dim"] * tokens


def _engine(training: Mapping[str, Any], shape: Shape, every: int) -> float:
    context = shape.get("max_position_embeddings") or row_tokens(training, shape)
    longest = training.get("vllm_max_model_length") or context
    return (2 * every + _cache(shape, longest)) / training.get("vllm_tensor_parallel_size", 1)
