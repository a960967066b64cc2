"""The context of a model: how many tokens of prompt and completion together it takes, and what a study asks of it."""

from collections.abc import Mapping
from typing import Any

from mcgrpo.study.settings import COMPLETION_LENGTH

SCALED = ("linear", "dynamic")
"""Kinds of rope scaling beside which `max_position_embeddings` is the context before scaling, as vLLM reads it."""


def context_of(known: Mapping[str, Any], tokenizer_length: float | None = None) -> int | None:
    """The context in tokens: `max_position_embeddings`, scaled with rope, and at most the tokenizer's limit.

    A sliding window does not limit it: older tokens are out of a layer's sight, and generation goes on.

    Args:
        known: fields of the model's config.json, see `mcgrpo.study.model_config`.
        tokenizer_length: `model_max_length` of the tokenizer, which vLLM does not exceed either.
    """
    positions = known.get("max_position_embeddings")
    if positions is None:
        return None
    rope = known.get("rope_scaling") or known.get("rope_parameters") or {}
    if rope.get("rope_type", rope.get("type")) in SCALED:
        positions = int(positions * rope.get("factor", 1.0))
    return positions if tokenizer_length is None else int(min(positions, tokenizer_length))


def room(context: int | None, vllm_length: int | None) -> tuple[int | None, str]:
    """The tokens that prompt and completion may have together, and what sets this limit; None without one."""
    limits = [(context, "the model's context"), (vllm_length, "vllm_max_model_length")]
    known = [(limit, name) for limit, name in limits if limit is not None]
    return min(known, default=(None, ""), key=lambda each: each[0])


def training_room(training: Mapping[str, Any], context: int | None) -> tuple[int | None, str]:
    """`room` of a training, in which `vllm_max_model_length` counts if the study uses vLLM, installed or not."""
    return room(context, training.get("vllm_max_model_length") if training.get("use_vllm") else None)


def check_training(training: Mapping[str, Any], context: int | None) -> None:
    """Refuse lengths of a training that its model's context does not hold, as far as its prompts are not needed.

    Raises:
        ValueError: with the numbers and the remedy.
    """
    vllm, completion = training.get("vllm_max_model_length"), completion_length(training)
    if training.get("use_vllm") and vllm is not None and context is not None and vllm > context:
        raise ValueError(
            f"training.vllm_max_model_length={vllm} is more than the model's context of {context} tokens, and vLLM "
            f"would not start: set it to {context} or less"
        )
    limit, name = training_room(training, context)
    prompt = training.get("max_prompt_length")
    if limit is not None and (prompt or 1) + completion > limit:
        asked = f"max_completion_length={completion}" + (f" + max_prompt_length={prompt}" if prompt else "")
        raise ValueError(
            f"training.{asked} tokens do not fit {name} of {limit}{'' if prompt else ' beside a prompt'}: lower "
            + ("one of them" if prompt else "it")
        )


def completion_length(training: Mapping[str, Any]) -> int:
    """The most tokens of a completion in training."""
    return training.get("max_completion_length", COMPLETION_LENGTH)
