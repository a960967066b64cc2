"""Build a tiny model from a spec: random, or warm-started on the toy task so that RL can improve it.

A folder has config, generation config, safetensors and tokenizer. A warm start is trained on a GPU if torch sees one.
The same spec gives the same weights on the same device, with the same number of threads.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from mcgrpo.data.toy.tokenizer import TOKENIZERS
from mcgrpo.data.toy.warm_start import WarmStart, warm_start
from mcgrpo.files import as_record

CONFIGS = {"qwen3": Qwen3Config, "llama": LlamaConfig}
SMALLEST_HEAD = 32
"""The narrowest head that vLLM's attention kernels accept."""


@dataclass(frozen=True)
class ModelSpec:
    """Shape, tokenizer and seed of a model. Embeddings are tied; the width of a head is `hidden_size / heads`.

    `warm_start` holds the fields of `mcgrpo.data.toy.warm_start.WarmStart`; without it the model stays random.
    """

    architecture: Literal["qwen3", "llama"]
    hidden_size: int = 64
    layers: int = 2
    heads: int = 2
    intermediate_size: int = 128
    tokenizer: Literal["word", "bytes"] = "word"
    seed: int = 0
    warm_start: dict[str, Any] | None = None


def build(spec: Mapping[str, Any], output: str | Path) -> None:
    """Write the model folder that `spec` (the fields of `ModelSpec`) describes, atomically.

    Raises:
        RecordError: for an unknown or missing key, or a value of the wrong type.
        ValueError: for inconsistent values.
        FileExistsError: if `output` exists and is not an empty folder.
    """
    output = Path(output)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise FileExistsError(f"{output} exists already: remove it first")
    model, tokenizer = create(spec)
    with _whole(output) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def create(spec: Mapping[str, Any]) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The model (fp32, on CPU, in evaluation mode) and tokenizer of a spec; errors as in `build`."""
    checked = as_record(ModelSpec, spec, "model spec")
    warm = None
    if checked.warm_start is not None:
        warm = as_record(WarmStart, checked.warm_start, "model spec: warm_start")
    _check(checked, warm)
    tokenizer = TOKENIZERS[checked.tokenizer]()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(checked.seed)
        model = AutoModelForCausalLM.from_config(_config(checked, tokenizer), dtype=torch.float32)
        model.generation_config = GenerationConfig(
            eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
        )
        if warm is not None:
            warm_start(model.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer, warm, checked.seed)
    return model.cpu().eval(), tokenizer


def _check(spec: ModelSpec, warm: WarmStart | None) -> None:
    sizes = {name: value for name, value in vars(spec).items() if isinstance(value, int) and name != "seed"}
    if warm is not None:
        shares = ("three_step_share", "slip_low", "slip_high", "until_solved")
        sizes |= {f"warm_start.{name}": value for name, value in vars(warm).items() if name not in shares}
        for name in shares:
            if not 0 <= (getattr(warm, name) or 0) <= 1:
                raise ValueError(f"model spec: warm_start.{name} {getattr(warm, name)} is not within 0..1")
        if warm.slip_low > warm.slip_high:
            raise ValueError(f"model spec: warm_start.slip_low {warm.slip_low} is above slip_high {warm.slip_high}")
        if spec.tokenizer != "word":
            raise ValueError(f"model spec: tokenizer {spec.tokenizer!r}: a warm_start is taught to 'word' models only")
    for name, value in sizes.items():
        if value <= 0:
            raise ValueError(f"model spec: {name} {value} is not positive")
    if spec.hidden_size % spec.heads or spec.hidden_size // spec.heads < SMALLEST_HEAD:
        raise ValueError(
            f"model spec: hidden_size {spec.hidden_size} over {spec.heads} heads: "
            f"a head must be a whole {SMALLEST_HEAD} or more wide"
        )


def _config(spec: ModelSpec, tokenizer: PreTrainedTokenizerFast) -> PreTrainedConfig:
    return CONFIGS[spec.architecture](
        vocab_size=len(tokenizer),
        hidden_size=spec.hidden_size,
        intermediate_size=spec.intermediate_size,
        num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads,
        num_key_value_heads=spec.heads,
        head_dim=spec.hidden_size // spec.heads,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        initializer_range=0.05,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )


@contextmanager
def _whole(output: Path) -> Iterator[Path]:
    """A temporary folder, renamed to `output` when the block succeeds."""
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    temporary.mkdir(parents=True)
    try:
        yield temporary
        temporary.rename(output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
