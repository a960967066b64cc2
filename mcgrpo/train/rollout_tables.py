"""Which rollouts of a training are recorded as text (`rollout_tables` of a study)."""

import json
from dataclasses import dataclass

from mcgrpo.files import RecordError, as_record


@dataclass(frozen=True)
class RolloutTables:
    """The groups recorded in `rollouts.jsonl`.

    Args:
        steps: number of optimizer steps, evenly spaced from the first to the last that rollouts are drawn for.
        prompts: number of groups per step, the first of the batch.
    """

    steps: int = 3
    prompts: int = 2

    def __post_init__(self):
        for name, value in vars(self).items():
            if value < 1:
                raise ValueError(f"rollout tables: {name} is {value}, not at least 1")


def parse_tables(text: str) -> RolloutTables | None:
    """Parse JSON such as `{"steps": 3, "prompts": 2}`; None for an empty text.

    Raises:
        ValueError: names the wrong value.
    """
    if not text:
        return None
    try:
        return as_record(RolloutTables, dict(json.loads(text)), "rollout tables")
    except (TypeError, json.JSONDecodeError) as error:
        raise RecordError(f"rollout tables: {text!r} is not a JSON object: {error}") from None
