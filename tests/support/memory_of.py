"""Shapes of two models, and the memory of a training of one."""

from dataclasses import replace

import runs
from studies import load

from mcgrpo.study.memory import memory

SHAPE = {
    "vocab_size": 1000,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "tie_word_embeddings": True,
}
QWEN3_1_7B = {"model_type": "qwen3", **load("config")["models"]["qwen3-1.7b"]["config"]}


def of(rows, tokens, gpus=1, shape=QWEN3_1_7B, **training):
    """The memory of a training with these rows, and with completions of as many tokens."""
    recipe = {"bf16": True, "gradient_checkpointing": True, "beta": 0.0, "max_completion_length": tokens}
    run = replace(runs.RUN, training={**recipe, "per_device_train_batch_size": rows, **training})
    return memory(run, gpus, shape)
