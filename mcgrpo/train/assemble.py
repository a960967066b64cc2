"""Build the trainer of a run from its model and data."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcgrpo.records import Example, Run
from mcgrpo.train.sharding import whole_state


def trainer_of(
    run: Run,
    args: Any,
    model: Path,
    examples: Sequence[Example],
    test: Sequence[Example] | None,
    callbacks: list[Any],
) -> Any:
    """The run's trainer: an `MCGRPOTrainer`, or a `ReleasedTrainer` if `args` has a fault of the release.

    Args:
        run: the run to train.
        args: its arguments, see `mcgrpo.train.arguments`.
        model: folder of the initial model.
        examples: to train on, see `mcgrpo.train.lengths`.
        test: to select a checkpoint on, if the run does so.
        callbacks: callbacks of the transformers Trainer.
    """
    import torch
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.trainer_callback import PrinterCallback

    from mcgrpo.grade.rewards import reward_functions
    from mcgrpo.train.released import ReleasedConfig, ReleasedTrainer
    from mcgrpo.trainer.trainer import MCGRPOTrainer

    tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
    # fp32 master weights: AdamW in bf16 does not move a 0.02 weight at a learning rate of 1e-6
    attention = run.training.get("attn_implementation", "sdpa")
    policy = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32, attn_implementation=attention)
    trainer = (ReleasedTrainer if isinstance(args, ReleasedConfig) else MCGRPOTrainer)(
        model=policy,
        reward_funcs=reward_functions(run.task, list(run.rewards)),
        args=args,
        train_dataset=prompts_of(run, examples),
        eval_dataset=test and prompts_of(run, test),
        processing_class=tokenizer,
        callbacks=callbacks,
        peft_config=LoraConfig(task_type="CAUSAL_LM", **run.training["lora"]) if "lora" in run.training else None,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def save_weights(trainer: Any, folder: Path) -> None:
    """Save the trained model and its tokenizer; called by every process of the training.

    The model is saved whole and in fp32, however it was trained: shards are gathered, adapters merged.
    """
    from accelerate.utils import is_peft_model

    state = whole_state(trainer)
    if trainer.is_world_process_zero():
        model = trainer.accelerator.unwrap_model(trainer.model)
        if is_peft_model(model):
            save_merged(model, state, folder)
        else:
            model.save_pretrained(folder, state_dict=state)
        trainer.processing_class.save_pretrained(folder)
    trainer.accelerator.wait_for_everyone()


def save_merged(model: Any, state: dict[str, Any] | None, folder: Path) -> None:
    """Save a model with LoRA adapters (arXiv 2106.09685) merged into the initial weights, which are read again in fp32.

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


def prompts_of(run: Run, examples: Sequence[Example]) -> Any:
    """Examples as a `datasets.Dataset` with the columns prompt, answer and solution."""
    from datasets import Dataset

    from mcgrpo.data.prompts import as_prompt

    return Dataset.from_list(
        [
            {"prompt": as_prompt(run.prompt, example.question), "answer": example.answer, "solution": example.solution}
            for example in examples
        ]
    )
