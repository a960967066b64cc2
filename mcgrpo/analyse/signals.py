"""How much signal each method of a study has at the study's own success rates, beside what its trainings gained.

`python -m mcgrpo.analyse.signals --results results/STUDY`

The success rates are those of the many rollouts of each prompt on which sign flips are measured, of the untrained model
and of whichever trained ones the study has. Shares of k rollouts are taken as probabilities: with 128 of each prompt
their p (1 - p) is 1/128 too small. Along a training they are those of `mcgrpo.analyse.pass_rates`. What a signal leaves
out: `mcgrpo.estimators.signals`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from mcgrpo import command_line
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.frames import accuracies, read_cells
from mcgrpo.analyse.pass_rates import by_level, probabilities, trainings, windows
from mcgrpo.analyse.records import CellSignal, SignalPoint
from mcgrpo.analyse.sign_flips import read_rewards
from mcgrpo.analyse.stats import DIGITS
from mcgrpo.estimators import Signal, signal
from mcgrpo.estimators.enumeration import EnumerationError
from mcgrpo.files import RecordError
from mcgrpo.grade.rewards import UNPARSABLE_GOLD
from mcgrpo.records import CELL, Plan, Run, cell_name
from mcgrpo.study.estimators import options_of
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import read_plan
from mcgrpo.study.variants import DEFAULT
from mcgrpo.sums import write_table

Trained = tuple[str, int, tuple[tuple[str, Any], ...]]
"""What an estimator's signal depends on: its name, G and options."""
RATES = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)


@dataclass(frozen=True)
class Rewards:
    """The reward probabilities that one model has: `levels`, ascending from a failure, and (points, levels).

    `prompts` is how many prompts or groups these rest on.
    """

    source: str
    setting: str
    benchmark: str
    levels: tuple[float, ...]
    probabilities: Tensor
    prompts: int

    @property
    def success(self) -> float:
        """The mean success rate."""
        return 1 - self.probabilities[:, 0].mean().item()


def read_probabilities(path: Path, run: Run, benchmark: str) -> Rewards:
    """The shares of reward levels of each prompt, from a file of grades; prompts without a parsable gold are left out.

    Raises:
        RecordError: for a line that is no grade, or no prompt with a gold.
    """
    drawn = [rewards for rewards in read_rewards(path).values() if UNPARSABLE_GOLD not in rewards]
    if not drawn:
        raise RecordError(f"{path}: no prompt has an answer to compare with")
    levels, counts = by_level(drawn)
    shares = counts / counts.sum(axis=1, keepdims=True)
    return Rewards(run.name, run.setting, benchmark, levels, torch.tensor(shares, dtype=torch.float64), len(drawn))


def signals(plan: Plan, rewards: Rewards, summary: pd.DataFrame) -> Iterator[CellSignal]:
    """A row for each trained cell of the setting, in the order of the plan, whose estimator looks at one group.

    Args:
        plan: of `mcgrpo.study.plan`: its `runs` are read.
        rewards: of one model.
        summary: of `mcgrpo.analyse.frames.read_cells`.
    """
    of = cache(partial(_signal, rewards, rewards.probabilities))  # an estimator is one signal in all of its cells
    found = {key: own for key, trained in cells_of(plan, rewards).items() if (own := of(trained)) is not None}
    measured = _sampled(summary)
    for key, own in found.items():
        numbers = {name: getattr(own, name) for name in ("per_step", "per_rollout", "per_row", "of_best", "drawn")}
        numbers |= {name: getattr(rewards, name) for name in ("source", "prompts", "success")}
        numbers |= {name: getattr(key, name) for name in CELL}
        yield CellSignal(**numbers, **_compared(key, found, measured.get(key, {})))


def _compared(key: CellKey, found: Mapping[CellKey | None, Signal], measured: Mapping[str, Any]) -> dict[str, Any]:
    """The predicted gain over a cell with another estimator, if there is one to compare with, and the measured gain."""
    own = found[key]
    for kind, name, other in (("difference", "method", key.baseline), ("change", "variant", key.default)):
        beside = found.get(other, own)
        if beside is not own and beside.per_step:
            gains = {f"gain_{end}": measured.get(f"{kind}_{end}") for end in ("low", "high", "verdict")}
            gains |= {"measure": measured.get("measure"), "gain": measured.get(kind)}
            predicted = round(own.per_step / beside.per_step - 1, DIGITS) + 0.0  # without the sign of -0.0
            return {"kind": kind, "baseline": getattr(other, name), "predicted": predicted, **gains}
    return {}


def cells_of(plan: Plan, rewards: Rewards) -> dict[CellKey, Trained]:
    """The estimator of each trained cell of the setting whose groups are of one prompt and one reward.

    Left out are injected flips, rewards other than accuracy alone with a weight of 1, and groups by position, as in the
    released code.
    """
    cells = {}
    for run in plan.runs:
        plain = run.rewards == {"accuracy": 1.0} and not run.training.get("advantage_flip_rate")
        plain = plain and run.training.get("group_by", "prompt") == "prompt"
        if run.setting == rewards.setting and run.method != UNTRAINED and plain:
            options = tuple(sorted(options_of(run).items()))
            key = CellKey(run.setting, run.variant, "in", rewards.benchmark, "", run.num_generations, run.method)
            cells[key] = run.estimator, run.num_generations, options
    return cells


def _signal(rewards: Rewards, probabilities: Tensor, trained: Trained) -> Signal | None:
    """None, with the reason printed, for an estimator whose signal cannot be enumerated."""
    estimator, size, options = trained
    try:
        return signal(estimator, size, list(rewards.levels), probabilities, **dict(options))
    except EnumerationError as error:
        print(f"left out: {error}")
        return None


def _sampled(summary: pd.DataFrame) -> dict[CellKey, dict[str, Any]]:
    """The rows of sampled accuracy, by cell and benchmark."""
    rows = accuracies(summary, "in", variant=None).query("decoding == 'sampled'").astype(object)
    rows = rows.where(rows.notna(), None)
    keys = (CellKey.of(row).without_measure for row in rows.itertuples(index=False))
    return dict(zip(keys, rows.to_dict("records"), strict=True))


def curves(plan: Plan, rewards: Rewards) -> Iterator[SignalPoint]:
    """The signal of each method under the variant `default`, at each of `RATES`."""
    successes = rewards.probabilities.sum(dim=0).index_fill(0, torch.tensor([0]), 0.0)
    if not successes.any():
        successes[-1] = 1.0
    points = RATES.unsqueeze(1) * successes / successes.sum()
    points[:, 0] = 1 - RATES
    for key, trained in cells_of(plan, rewards).items():
        signal = _signal(rewards, points, trained) if key.variant == DEFAULT else None
        if signal is None:
            continue
        point = partial(SignalPoint, rewards.setting, rewards.source, key.method, key.num_generations)
        for index, rate in enumerate(RATES.tolist()):
            alone = signal[index : index + 1].per_rollout
            yield point(rate, alone, signal.objective[index].item())


def main(arguments: list[str] | None = None) -> None:
    """Compute the exact signal of every method at a study's own success rates."""
    parser = command_line.parser(main.__doc__)
    text = "results/STUDY: plan.json, summary.csv, comparisons.csv, rollouts"
    parser.add_argument("--results", type=Path, required=True, help=text)
    files = ResultFiles(parser.parse_args(arguments).results)
    with command_line.errors(ValueError):
        plan, summary = read_plan(files.plan), read_cells(files)
        measured = list(_measured(plan, files))
        everywhere = [*measured, *along(plan, files)] if measured else []
        write_table(files.signals, CellSignal, (row for each in everywhere for row in signals(plan, each, summary)))
        write_table(files.signal_curves, SignalPoint, (row for each in measured for row in curves(plan, each)))


def _measured(plan: Plan, files: ResultFiles) -> Iterator[Rewards]:
    """The rewards of every model whose sign flips are measured; of an unfinished study, of those that are there."""
    runs = {run.name: run for run in plan.runs}
    for name, spec in plan.flips.items():
        path = files.rollout_grades(name, spec.benchmark)
        if path.is_file():
            yield read_probabilities(path, runs[name], spec.benchmark)


def along(plan: Plan, files: ResultFiles) -> Iterator[Rewards]:
    """The rewards along the trainings of each setting, on its first benchmark in distribution."""
    for runs in trainings(plan):
        setting, cell = runs[0].setting, cell_name(vars(runs[0]))
        benchmark = next(name for name, role in plan.benchmarks[setting].items() if role == "in")
        for name, groups in windows(runs, files):
            levels, chances = probabilities(groups)
            yield Rewards(f"{cell}/{name}", setting, benchmark, levels, chances, len(groups))


if __name__ == "__main__":
    main()
