"""What MCGRPOTrainer refuses of what TRL supports: whatever is not text, and options that would fail, or change the
training, only after everything was loaded.
"""

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import trl
from accelerate.utils import is_peft_model
from datasets import Dataset
from transformers import PreTrainedModel, ProcessorMixin
from transformers.utils import is_liger_kernel_available
from trl import GRPOTrainer

from mcgrpo.trainer.config import MCGRPOConfig
from mcgrpo.trainer.drawn import Rollouts


def check_arguments(given: Mapping[str, Any]) -> None:
    """Refuse arguments of the trainer, given by their names, before TRL loads anything.

    Raises:
        TypeError: for arguments that are not an `MCGRPOConfig`.
        ValueError: for images, and for Liger's loss with compact updates.
        ImportError: for Liger's kernels if they are not installed.
    """
    config = given["args"]
    if not isinstance(config, MCGRPOConfig):
        raise TypeError(f"MCGRPOTrainer needs args=MCGRPOConfig(...), not {type(config).__name__}")
    if config.use_liger_kernel and config.compact_updates and hasattr(GRPOTrainer, "compute_liger_loss"):
        raise ValueError(
            f"TRL {trl.__version__} computes the loss of `use_liger_kernel` apart from the one that compact updates "
            "rescale: set compact_updates=False, or install TRL 1.14 or later"
        )
    if config.use_liger_kernel and not is_liger_kernel_available():  # asked only after vLLM's engine was built
        raise ImportError("use_liger_kernel=True needs the package liger-kernel, which is not installed")
    check_processor(given.get("processing_class"))
    if isinstance(dataset := given.get("train_dataset"), Dataset) and len(dataset):
        check_row(dataset[0])


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


def check_trainable(model: PreTrainedModel) -> None:
    """Refuse a model without a weight that training could move.

    Raises:
        ValueError: naming the remedy.
    """
    idle = {*model.peft_config} - {*model.active_adapters} if is_peft_model(model) else set()
    names = (name for name, weight in model.named_parameters() if weight.requires_grad)
    if all(any(f".{adapter}." in name for adapter in idle) for name in names):
        remedy = (
            "load the adapter with PeftModel.from_pretrained(..., is_trainable=True), and activate it with set_adapter"
            if is_peft_model(model)
            else "call model.requires_grad_(True)"
        )
        raise ValueError(
            f"nothing would be trained: every weight of the model is frozen or of an idle adapter; {remedy}"
        )


def check_row(row: Mapping[str, Any]) -> None:
    """Refuse a row of a data set with images, in either of TRL's forms: a column, or a part of a message's content.

    Raises:
        ValueError: naming the column or the part, and the prompt.
    """
    prompt = row.get("prompt", "")
    kinds = [f"column {column!r}" for column in ("image", "images") if column in row]
    if not isinstance(prompt, str):
        contents = [message["content"] for message in prompt if isinstance(message.get("content"), list)]
        types = [part.get("type") for content in contents for part in content]
        kinds += [f"part of type {kind!r}" for kind in types if kind != "text"]
    if kinds:
        raise ValueError(
            f"MCGRPOTrainer trains on text alone, but a row has a {kinds[0]}; its prompt: {shorten(str(prompt), 200)}"
        )


def check_rollouts(rollouts: Rollouts) -> None:
    """Refuse rollouts with images, from an environment or a tool.

    Raises:
        ValueError: if there is one.
    """
    if rollouts.images is not None or any(rollouts.tool_images):
        raise ValueError("MCGRPOTrainer trains on text alone, but an environment or a tool has returned an image")
