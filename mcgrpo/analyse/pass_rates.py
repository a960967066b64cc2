"""How the pass rates of prompts are spread at three times of a training: at its start, at a third, and at its end.

They come from the groups that a training draws anyway. A group of n rollouts estimates the pass rate of its prompt with
a binomial error, so the share of each group is too spread a measure of the rates. The spread without that error is that
of a beta distribution with the moments of a beta-binomial (Griffiths 1973, Biometrics 29(4)), over all groups of a
tenth of the steps and of all seeds.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from scipy import special
from torch import Tensor

from mcgrpo.files import as_record, iter_json_lines
from mcgrpo.records import Group, Plan, Run
from mcgrpo.study.paths import GROUPS, ResultFiles
from mcgrpo.study.primary import MEAN
from mcgrpo.study.variants import DEFAULT

TIMES = (0.0, 1 / 3, 0.9)
"""Where a tenth of the steps begins, as a share of all: the start, a third, the end."""
POINTS = 50
"""Prompts that stand for the distribution: its quantiles at equal distances."""
LEAST, MOST = 1e-3, 1 - 1e-3
"""Bounds of the correlation within a group: at 0 all prompts are equal, at 1 each always passes or always fails."""


def trainings(plan: Plan) -> Iterator[list[Run]]:
    """For each setting the trainings whose groups are looked at, one for each seed."""
    plain = [
        run for run in plan.runs if (run.method, run.variant) == (MEAN, DEFAULT) and run.rewards == {"accuracy": 1.0}
    ]
    for setting in dict.fromkeys(run.setting for run in plain):
        own = [run for run in plain if run.setting == setting]
        yield [run for run in own if run.num_generations == max(each.num_generations for each in own)]


def windows(runs: Sequence[Run], files: ResultFiles) -> Iterator[tuple[str, list[list[float]]]]:
    """The rewards of each group at each of `TIMES`, after the steps that they are of; nothing for unfinished trainings.

    Raises:
        RecordError: for a line that is no group.
    """
    paths = [path for run in runs if (path := files.run(run.name) / GROUPS).is_file()]
    groups = [as_record(Group, row, where) for path in paths for where, row in iter_json_lines(path)]
    steps = max((group.step for group in groups), default=0)
    for begin in TIMES if groups else ():
        first = 1 + int(begin * steps)
        last = max(first, int((begin + 0.1) * steps + 0.5))
        there = (group.rewards for group in groups if first <= group.step <= last)
        drawn = [[reward for reward in rewards if reward is not None] for rewards in there]
        yield f"steps {first}-{last}", [rewards for rewards in drawn if rewards]


def by_level(groups: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], np.ndarray]:
    """Reward levels, ascending from a failure (0), and how often each is in each group: (groups, levels)."""
    levels = tuple(sorted({0.0, 2.0}.union(*groups)))
    return levels, np.array([[group.count(level) for level in levels] for group in groups])


def probabilities(groups: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], Tensor]:
    """Reward levels, ascending from a failure (0), and (`POINTS`, levels) probabilities of prompts.

    Successes are spread over the levels above 0 as in all groups together.

    Args:
        groups: the rewards of each group, of one size; a reward above 0 is a success.
    """
    levels, counts = by_level(groups)
    rates = _spread(counts[:, 1:].sum(axis=1), counts.sum(axis=1))
    successes = counts[:, 1:].sum(axis=0)
    shares = successes / successes.sum() if successes.any() else np.eye(len(levels) - 1)[-1]
    return levels, torch.tensor(np.column_stack([1 - rates, rates[:, None] * shares]), dtype=torch.float64)


def _spread(passed: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """(POINTS,) pass rates: quantiles of the beta distribution with the moments of these counts."""
    n, mean = drawn.mean(), passed.sum() / drawn.sum()
    if mean in (0.0, 1.0):
        return np.full(POINTS, mean)
    within = 1.0 if n == 1 else ((passed / drawn).var() * n / (mean * (1 - mean)) - 1) / (n - 1)
    total = 1 / min(max(within, LEAST), MOST) - 1
    return special.betaincinv(mean * total, (1 - mean) * total, (np.arange(POINTS) + 0.5) / POINTS)
