"""LoRA (arXiv 2106.09685): train adapters instead of the model's weights, and merge them at the end."""

import shutil
from pathlib import Path
from typing import Any


def lora_config(settings: dict[str, Any] | None) -> Any:
    """PEFT's configuration from `training.lora` of a study; None for full fine-tuning.

    Args:
        settings: `r`, `lora_alpha`, `lora_dropout`, `target_modules`, with PEFT's names and defaults.
    """
    if settings is None:
        return None
    from peft import LoraConfig

    return LoraConfig(task_type="CAUSAL_LM", **settings)


def save_merged(model: Any, state: dict[str, Any] | None, folder: Path) -> None:
    """Save a model with its adapters merged into the initial weights, which are read again in fp32.

    Args:
        model: PEFT's model, whose base was loaded from a folder; not changed.
        state: the weights of the adapters, if they are sharded (see `mcgrpo.train.sharding`).
        folder: output folder, as for a model without adapters.
    """
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    adapter = folder.with_name(f"{folder.name}.adapter")
    model.save_pretrained(adapter, state_dict=state)
    base = AutoModelForCausalLM.from_pretrained(
        model.peft_config["default"].base_model_name_or_path, dtype=torch.float32
    )
    PeftModel.from_pretrained(base, adapter).merge_and_unload().save_pretrained(folder)
    shutil.rmtree(adapter)
