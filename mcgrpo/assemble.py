"""A run's trainer, put together from the files that it starts from."""

from pathlib import Path
from typing import Any

from mcgrpo.arguments import selects
from mcgrpo.files import read_jsonl
from mcgrpo.records import Example, Run


def trainer_of(run: Run, args: Any, model: Path, data: Path, test: Path | None, callbacks: list[Any]) -> Any:
    """The run's trainer: an `MCGRPOTrainer`, or a `ReleasedTrainer` where `args` has a fault of the release.

    Args:
        run: what is trained.
        args: its arguments, see `mcgrpo.arguments`.
        model: folder of the model to start from.
        data: the data set, `resources/data/NAME.jsonl`.
        test: the benchmark that a checkpoint is selected on, where the run asks for that.
        callbacks: of the transformers Trainer.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.trainer_callback import PrinterCallback

    from mcgrpo.released import ReleasedConfig, ReleasedTrainer
    from mcgrpo.rewards import reward_functions
    from mcgrpo.trainer import MCGRPOTrainer

    trainer = (ReleasedTrainer if isinstance(args, ReleasedConfig) else MCGRPOTrainer)(
        # fp32 master weights: AdamW in bf16 does not move a 0.02 weight at a learning rate of 1e-6
        model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        reward_funcs=reward_functions(run.task, list(run.rewards)),
        args=args,
        train_dataset=prompts_of(run, data),
        eval_dataset=prompts_of(run, test, "test") if selects(run) else None,
        processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def save_weights(trainer: Any, folder: Path) -> None:
    """The trained model and its tokenizer into a folder; called by every process of the training."""
    trainer.save_model(str(folder))
    trainer.accelerator.wait_for_everyone()
    if trainer.is_world_process_zero():
        trainer.processing_class.save_pretrained(folder)


def prompts_of(run: Run, data_file: Path, split: str = "train") -> Any:
    """One split as a `datasets.Dataset` with the columns prompt, answer and solution."""
    from datasets import Dataset

    from mcgrpo.prompts import as_prompt

    examples = [example for example in read_jsonl(data_file, Example) if example.split == split]
    if not examples:
        raise ValueError(f"{data_file}: no example of split {split!r}")
    return Dataset.from_list(
        [
            {"prompt": as_prompt(run.prompt, example.question), "answer": example.answer, "solution": example.solution}
            for example in examples
        ]
    )
