"""Build a tiny random model from a spec.

A folder has config, generation config, safetensors and tokenizer. The same spec gives the same weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from mcgrpo.data.toy.tokenizer import TOKENIZERS
from mcgrpo.files import as_record, whole_folder

SMALLEST_HEAD = 32
"""The narrowest head that vLLM's attention kernels accept."""


@dataclass(frozen=True)
class ModelSpec:
    """Shape, tokenizer and seed of a model. Embeddings are tied; the width of a head is `hidden_size / heads`."""

    architecture: Literal["qwen3", "llama"]
    hidden_size: int = 64
    layers: int = 2
    heads: int = 2
    intermediate_size: int = 128
    tokenizer: Literal["word", "bytes"] = "word"
    seed: int = 0


def build(spec: Mapping[str, Any], output: str | Path) -> None:
    """Write the model folder that `spec` (the fields of `ModelSpec`) describes, atomically.

    Raises:
        RecordError: for an unknown or missing key, or a value of the wrong type.
        ValueError: for inconsistent values.
        FileExistsError: if `output` exists and is not an empty folder.
    """
    model, tokenizer = create(spec)
    with whole_folder(Path(output)) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def create(spec: Mapping[str, Any]) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The model (fp32, on CPU, in evaluation mode) and tokenizer of a spec; errors as in `build`."""
    checked = as_record(ModelSpec, spec, "model spec")
    width, rest = divmod(checked.hidden_size, checked.heads)
    if rest or width < SMALLEST_HEAD:
        raise ValueError(f"model spec: heads should be a whole {SMALLEST_HEAD} or more wide, of hidden_size / heads")
    tokenizer = TOKENIZERS[checked.tokenizer]()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(checked.seed)
        model = AutoModelForCausalLM.from_config(_config(checked, tokenizer), dtype=torch.float32)
        model.generation_config = GenerationConfig(
            eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
        )
    return model.eval(), tokenizer


def _config(spec: ModelSpec, tokenizer: PreTrainedTokenizerFast) -> PreTrainedConfig:
    return AutoConfig.for_model(
        spec.architecture,
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
