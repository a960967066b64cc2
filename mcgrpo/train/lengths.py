"""The examples that a run trains on: those whose prompts, with a completion, fit the model's context."""

from pathlib import Path

from mcgrpo.data.lengths import context_here, measured, named
from mcgrpo.records import Example, Run
from mcgrpo.study.context import check_training, completion_length, training_room


def fitting(run: Run, model: Path, file: Path, split: str = "train") -> tuple[list[Example], int]:
    """The examples of a split, and how many more were left out, as `max_prompt_length` of the run says.

    Raises:
        ValueError: for a prompt that is not left out and does not fit, with its line, the numbers and the remedy; for
            lengths that no prompt would fit beside; if none is left.
    """
    from transformers import AutoTokenizer

    training, tokenizer = run.training, AutoTokenizer.from_pretrained(model)
    context = context_here(model, tokenizer)
    check_training(training, context)
    rows = list(measured(file, split, run.prompt, tokenizer, training.get("chat_template_kwargs", {})))
    most = training.get("max_prompt_length")
    kept = [row for row in rows if most is None or row[2] <= most]
    if not kept:
        raise ValueError(f"{file}: no prompt of split {split!r} has at most max_prompt_length={most} tokens")
    longest, completion = max(kept, key=lambda row: row[2]), completion_length(training)
    limit, name = training_room(training, context)
    if limit is not None and longest[2] + completion > limit:
        raise ValueError(
            f"{named(file, longest)}, and max_completion_length={completion} more do not fit {name} of {limit}: leave "
            f"longer prompts out (training.max_prompt_length: {limit - completion}), or lower max_completion_length"
        )
    return [example for _, example, _ in kept], len(rows) - len(kept)
