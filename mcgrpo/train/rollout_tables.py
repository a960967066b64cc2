"""Which rollouts of a training are recorded as text (`rollout_tables` of a study)."""

import json
from dataclasses import dataclass, replace

from mcgrpo.files import RecordError, as_record


@dataclass(frozen=True)
class RolloutTables:
    """The groups recorded in `rollouts.jsonl`.

    Args:
        steps: number of optimizer steps, evenly spaced from the first to the last that rollouts are drawn for.
        prompts: number of groups per step, the first of the batch.
        oracle: number of additional rollouts per prompt, from which the true sign of an advantage is estimated; 0 for
            none. Not available with vLLM.
        oracle_seeds: seeds of trainings that draw these; None for all.
    """

    steps: int = 3
    prompts: int = 2
    oracle: int = 0
    oracle_seeds: list[int] | None = None

    def __post_init__(self):
        for name, least in (("steps", 1), ("prompts", 1), ("oracle", 0)):
            if (value := getattr(self, name)) < least:
                raise ValueError(f"rollout tables: {name} is {value}, not at least {least}")

    def of_seed(self, seed: int) -> "RolloutTables":
        """Those of a training with this seed."""
        drawn = self.oracle_seeds is None or seed in self.oracle_seeds
        return self if drawn else replace(self, oracle=0)


def parse_tables(text: str) -> RolloutTables | None:
    """Parse JSON such as `{"steps": 3, "prompts": 2, "oracle": 32}`; None for an empty text.

    Raises:
        ValueError: names the wrong value.
    """
    if not text:
        return None
    try:
        return as_record(RolloutTables, dict(json.loads(text)), "rollout tables")
    except (TypeError, json.JSONDecodeError) as error:
        raise RecordError(f"rollout tables: {text!r} is not a JSON object: {error}") from None
