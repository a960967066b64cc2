"""Which rollouts of a training are recorded as text (`rollout_tables` of a study)."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class RolloutTables:
    """The groups recorded in `rollouts.jsonl`.

    Args:
        steps: number of optimizer steps, evenly spaced from the first to the last that rollouts are drawn for.
        prompts: number of groups per step, the first of the batch.
    """

    steps: int = 3
    prompts: int = 2


def parse_tables(text: str) -> RolloutTables | None:
    """Parse JSON such as `{"steps": 3, "prompts": 2}`, which the study's schema has checked; None for an empty text."""
    return RolloutTables(**json.loads(text)) if text else None
