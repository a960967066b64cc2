"""How many tokens a completion may have: what the study asks, or what a model's context leaves beside the prompts."""

from pathlib import Path
from typing import Any

from mcgrpo.data.lengths import Measured, context_here, measured, named
from mcgrpo.study.context import room


def fitted(settings: dict[str, Any], model: Path, file: Path, prompt: str, tokenizer: Any) -> dict[str, Any]:
    """The settings of an evaluation with lengths that a model's context holds, the same for every engine.

    `max_new_tokens` is at most what the longest prompt of the benchmark leaves, one number for a model and a benchmark,
    and `asked_new_tokens` what the study asks for; `vllm_max_model_length` is at most the context.

    Raises:
        ValueError: for a prompt beside which not one token fits, with its line.
    """
    kwargs = settings.get("chat_template_kwargs", {})
    longest = max(measured(file, "test", prompt, tokenizer, kwargs), key=lambda row: row[2])
    return capped(settings, context_here(model, tokenizer), longest, file)


def capped(settings: dict[str, Any], context: int | None, longest: Measured, file: Path) -> dict[str, Any]:
    """`fitted`, given the context and the longest prompt."""
    asked, vllm = settings["max_new_tokens"], settings.get("vllm_max_model_length")
    limit, name = room(context, vllm)
    fit = asked if limit is None else min(asked, limit - longest[2])
    if fit < 1:
        remedy = "raise it" if name == "vllm_max_model_length" else "take the question out of the data set"
        raise ValueError(f"{named(file, longest)}, and {name} of {limit} holds no completion beside it: {remedy}")
    length = {} if vllm is None else {"vllm_max_model_length": limit}
    return {**settings, **length, "max_new_tokens": fit, "asked_new_tokens": asked}
