"""A sample of training rollouts as text: groups of completions with rewards, advantages and marks."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from mcgrpo.files import read_jsonl
from mcgrpo.records import Rollout, Run, cell_name
from mcgrpo.report.page.jobs import Training
from mcgrpo.study.methods import label, method_order
from mcgrpo.study.paths import ROLLOUTS, ResultFiles
from mcgrpo.study.variants import DEFAULT

OF_GROUP = ("step", "prompt", "oracle")
"""Fields of `Rollout` that all rollouts of a group share."""
LONGEST = 4000
"""Maximum number of characters shown of a prompt or completion."""
PROMPTS = 4
"""Maximum number of groups shown per step."""
BUDGET = 4_000_000
"""Maximum number of bytes of all completions."""


@dataclass(frozen=True)
class Group:
    """All completions of one prompt at one step; `rollouts` have the other fields of `Rollout`.

    `oracle` is the mean reward of many more rollouts of the prompt, None if none were drawn.
    """

    step: int
    prompt: str
    oracle: float | None
    rollouts: list[dict[str, Any]]


@dataclass(frozen=True)
class RunView:
    """The groups of one run, with its label."""

    name: str
    label: str
    estimator: str
    groups: list[Group]


@dataclass(frozen=True)
class Shown:
    """The runs shown, with the numbers of runs that are shown, could be shown, and have no file."""

    runs: list[RunView] = field(default_factory=list)
    chosen: int = 0
    absent: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def completions(results: Path, trainings: list[Training], budget: int = BUDGET) -> Shown:
    """A few prompts of the first seed of each cell, at the first, middle and last recorded step.

    The default variant at the smallest G comes first. Whole runs that would exceed `budget` bytes are left out.

    Raises:
        RecordError: names the line of a file that is not a valid rollout.
    """
    views, absent, left_out = [], [], []
    chosen = list(_first_seeds(trainings))
    for run in chosen:
        path = ResultFiles(results).run(run.name) / ROLLOUTS
        if not path.is_file():
            absent.append(run.name)
            continue
        view = RunView(run.name, _label(run), run.estimator, _sample(path))
        size = len(json.dumps(asdict(view)))
        if size > budget:
            left_out.append(run.name)
            continue
        budget -= size
        views.append(view)
    return Shown(views, len(chosen), absent, left_out)


def _first_seeds(trainings: list[Training]) -> Iterator[Run]:
    """One run of each cell, the default variant first."""
    cells: dict[str, Run] = {}
    for run in (each.run for each in trainings):
        cells.setdefault(cell_name(vars(run)), run)
    return iter(sorted(cells.values(), key=_place))


def _place(run: Run) -> tuple:
    return run.variant != DEFAULT, run.setting, run.num_generations, method_order(run.method), run.variant


def _label(run: Run) -> str:
    variant = "" if run.variant == DEFAULT else f", {run.variant}"
    return f"{label(run.method)}, G={run.num_generations}{variant} · {run.setting}, seed {run.seed}"


def _sample(path: Path) -> list[Group]:
    """The groups of three steps of a file."""
    groups = list(_groups(path))
    steps = sorted({group.step for group in groups})
    wanted = {steps[0], steps[len(steps) // 2], steps[-1]} if steps else set()
    return [group for step in sorted(wanted) for group in [each for each in groups if each.step == step][:PROMPTS]]


def _groups(path: Path) -> Iterator[Group]:
    """Consecutive rows of one step and prompt; a sample number that does not increase starts another group."""
    for _, rows in groupby(read_jsonl(path, Rollout), key=lambda row: (row.step, row.prompt)):
        held: list[Rollout] = []
        for row in rows:
            if held and row.sample <= held[-1].sample:
                yield _group(held)
                held = []
            held.append(row)
        yield _group(held)


def _group(rows: list[Rollout]) -> Group:
    first = rows[0]
    texts = [replace(row, completion=_cut(row.completion)) for row in rows]
    own = [{name: value for name, value in asdict(row).items() if name not in OF_GROUP} for row in texts]
    return Group(first.step, _cut(first.prompt), first.oracle, own)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST} characters more in {ROLLOUTS})"
