"""Whether a training takes an optimizer step at all."""

from collections.abc import Mapping
from typing import Any


def check_prompts(rows: int, data: str, training: Mapping[str, Any], processes: int, num_generations: int) -> None:
    """Refuse a training whose data set has fewer prompts than rollouts are generated for at a time.

    TRL leaves out what does not fill such a batch, so that nothing would be left to train on.

    Args:
        rows: of the data set, to train on.
        data: its name, or its file.
        training: `per_device_train_batch_size`, and `steps_per_generation` or else `gradient_accumulation_steps`.
        processes: that train together.
        num_generations: G.

    Raises:
        ValueError: with the arithmetic.
    """
    size = training["per_device_train_batch_size"]
    steps = training.get("steps_per_generation", training.get("gradient_accumulation_steps", 1))
    prompts = size * steps * processes // num_generations
    if rows < prompts:
        raise ValueError(
            f"not one optimizer step would be taken: rollouts are generated for {prompts} prompts at a time "
            f"(per_device_train_batch_size={size} x steps_per_generation={steps} x {processes} process(es) / "
            f"num_generations={num_generations}), and {data} has {rows} to train on"
        )
