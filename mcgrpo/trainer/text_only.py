"""What MCGRPOTrainer refuses of TRL's data: whatever in a prompt is not text."""

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

from transformers import ProcessorMixin


def check_processor(processor: Any) -> None:
    """Refuse a processor of images and text.

    Raises:
        ValueError: naming it.
    """
    if isinstance(processor, ProcessorMixin):
        raise ValueError(
            f"MCGRPOTrainer trains on text alone: pass processing_class=processor.tokenizer, not a "
            f"{type(processor).__name__}, which processes images too"
        )


def check_row(row: Mapping[str, Any]) -> None:
    """Refuse a row of a data set with images, in either form of TRL's: a column, or a part of a message's content.

    Raises:
        ValueError: naming the column or the part, and the prompt.
    """
    prompt = row["prompt"]
    kinds = [f"column {column!r}" for column in ("image", "images") if column in row]
    if not isinstance(prompt, str):
        contents = [message["content"] for message in prompt if isinstance(message.get("content"), list)]
        types = [part.get("type") for content in contents for part in content]
        kinds += [f"part of type {kind!r}" for kind in types if kind != "text"]
    if kinds:
        raise ValueError(
            f"MCGRPOTrainer trains on text alone, but a row has a {kinds[0]}; its prompt: {shorten(str(prompt), 200)}"
        )
