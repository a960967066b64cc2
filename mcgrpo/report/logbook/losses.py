"""What a study lost, from its records: run.json, groups.jsonl and scores.csv."""

from collections.abc import Iterable
from functools import cache

import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.files import as_record, iter_json_lines
from mcgrpo.records import Group
from mcgrpo.report.lost import UNGRADED, Lost
from mcgrpo.report.page.jobs import FINISHED, Training
from mcgrpo.study.paths import GROUPS, ResultFiles

RATES = {f"rate-{verdict}": verdict for verdict in UNGRADED}
EVALUATED = ["setting", "variant", "role", "benchmark", "num_generations", "method"]


def lost(
    files: ResultFiles,
    trainings: Iterable[Training],
    seeds: dict[CellKey, set[int]],
    scores: pd.DataFrame,
    samples: int,
) -> Lost:
    """What was lost of these trainings and evaluations.

    Args:
        trainings: the trainings.
        seeds: planned seeds of the cells (`mcgrpo.analyse.scored.planned_seeds`), a key for each benchmark.
        scores: scores.csv.
        samples: completions of a problem that are sampled, beside the greedy one.
    """
    total = Lost()
    for each in trainings:
        total.planned += 1
        if each.state != FINISHED:
            total.missing[each.state] += 1
            continue
        drawn, unscorable = rollouts(files, each.run.name)
        total.rollouts += drawn
        total.unscorable += unscorable
    rates = scores[scores.measure.isin(RATES)]
    by_cell = {key: group for key, group in rates.groupby(EVALUATED)}  # noqa: C416
    for key, own in seeds.items():
        if key.role in ("in", "out"):
            group = by_cell.get(tuple(getattr(key, name) for name in EVALUATED), rates[:0])
            total.unmeasured += len(own - set(group.seed))
            for row in group.itertuples():
                completions = row.n * (1 + samples)
                total.completions += completions if row.measure == next(iter(RATES)) else 0
                total.ungraded[RATES[row.measure]] += round(row.value * completions)
    return total


@cache
def rollouts(files: ResultFiles, run: str) -> tuple[int, int]:
    """Rollouts that a finished training drew, and those of them without a reward."""
    path = files.run(run) / GROUPS
    if not path.is_file():
        return 0, 0
    rewards = [as_record(Group, row, where).rewards for where, row in iter_json_lines(path)]
    return sum(map(len, rewards)), sum(each.count(None) for each in rewards)
