"""Rewards, advantages and keep masks of a training against its metrics: each tells the same of what was drawn."""

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from mcgrpo.files import iter_json_lines, read_jsonl
from mcgrpo.records import Group

GROUPS, METRICS = "groups.jsonl", "metrics.jsonl"
TOLERANCE = 1e-5
"""Metrics are means in single precision."""


def disagreements(folder: Path, num_generations: int) -> Iterator[str]:
    """What the groups of a run say otherwise than its metrics; without a file of groups, that.

    Of every step: the mean reward, and the share of rollouts without one. Of every group: as many advantages, lengths
    and marks as rewards, and `num_generations` of them kept.

    Raises:
        RecordError: for a line of either file that cannot be read.
    """
    path = folder / GROUPS
    if not path.is_file():
        yield f"{path}: no such file"
        return
    steps: dict[int, list[float | None]] = defaultdict(list)
    for line, group in enumerate(read_jsonl(path, Group), 1):
        steps[group.step] += group.rewards
        if {len(group.advantages), len(group.kept), len(group.lengths)} != {len(group.rewards)}:
            yield f"{path}:{line}: not as many advantages, marks and lengths as rewards"
        if sum(group.kept) != num_generations:
            yield f"{path}:{line}: {sum(group.kept)} rollouts kept of G={num_generations}"
    logged = {row["step"]: row for _, row in iter_json_lines(folder / METRICS) if "drawn/reward" in row}
    for step in sorted(steps.keys() | logged.keys()):
        if step not in steps or step not in logged:
            yield f"{path}: step {step} is only in {METRICS if step in logged else GROUPS}"
        elif odd := _odd(steps[step], logged[step]["drawn/reward"], logged[step]["drawn/frac_unscorable"]):
            yield f"{path}: step {step}: {odd} is not that of {METRICS}"


def _odd(rewards: list[float | None], mean: float, unscorable: float) -> str:
    scored = [reward for reward in rewards if reward is not None]
    if not math.isclose(1 - len(scored) / len(rewards), unscorable, abs_tol=TOLERANCE):
        return "the share of rollouts without a reward"
    # Of several batches a step, the mean of their means was logged: another one where some rollouts have no reward
    if len(scored) < len(rewards) or math.isclose(sum(scored) / len(scored), mean, abs_tol=TOLERANCE):
        return ""
    return "the mean reward"
