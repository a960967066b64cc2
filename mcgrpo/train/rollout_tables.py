"""Which rollouts of a training are written down to be read: what a study asks for, and a job is told."""

import json
from dataclasses import dataclass

from mcgrpo.files import RecordError, as_record


@dataclass(frozen=True)
class RolloutTables:
    """Which groups go into `rollouts.jsonl`.

    Args:
        steps: of the optimizer steps that rollouts are drawn for, so many: the first, the last, and evenly between.
        prompts: groups of each of these steps, the first ones of the batch.
        oracle: rollouts that are drawn beside them for each prompt, to know the sign that an advantage should have; 0
            for none. There is none with vLLM.
    """

    steps: int = 3
    prompts: int = 2
    oracle: int = 0

    def __post_init__(self):
        for name, least in (("steps", 1), ("prompts", 1), ("oracle", 0)):
            if (value := getattr(self, name)) < least:
                raise ValueError(f"rollout tables: {name} is {value}, not at least {least}")


def parse_tables(text: str) -> RolloutTables | None:
    """From JSON, `{"steps": 3, "prompts": 2, "oracle": 32}`; None from an empty text.

    Raises:
        ValueError: naming what is wrong.
    """
    if not text:
        return None
    try:
        return as_record(RolloutTables, dict(json.loads(text)), "rollout tables")
    except (TypeError, json.JSONDecodeError) as error:
        raise RecordError(f"rollout tables: {text!r} is no JSON object: {error}") from None
