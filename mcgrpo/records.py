"""The contract: one typed record for every file that passes between rules.

Data flows one way (study file -> runs -> completions -> grades -> scores -> summary -> tables, figures), and each
arrow is a file of records: those up to the grades are below, the others in `mcgrpo.analyse.records`. A JSONL file has
one record per line; a CSV file has one record per row, in the order of the fields. This module imports only the
standard library.
"""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Decoding = Literal["greedy", "sampled"]
Verdict = Literal["correct", "equivalent", "wrong", "unparseable", "timeout", "error"]
VERDICTS: tuple[str, ...] = typing.get_args(Verdict)
Role = Literal["in", "out", "train", "flips"]
"""The role of a benchmark in a setting: in distribution, out of distribution, the training itself (seconds, reward), or
the source of the rollouts on which sign-flip rates are measured."""

PROTOCOL_SUFFIXES = {"paper": "", "released": ".released", "robust": ".robust"}
"""Protocols of evaluation; each grades the same completions into `grades/{run}/{benchmark}{suffix}.jsonl`."""

CELL = ("setting", "method", "num_generations", "variant")
"""The fields of a cell: its runs differ in their seed alone."""


def cell_name(row: Mapping[str, Any]) -> str:
    """The name of the cell of a run, or of another row with these fields."""
    return "{setting}/{method}/G{num_generations}/{variant}".format(**row)


def run_name(row: Mapping[str, Any]) -> str:
    """The name of the run that a row is of."""
    return f"{cell_name(row)}/seed{row['seed']}"


@dataclass(frozen=True)
class Example:
    """A row of `resources/data/{dataset}.jsonl`: a problem, its short answer and, optionally, its solution."""

    id: str
    split: str
    question: str
    answer: str
    solution: str = ""


@dataclass(frozen=True)
class Completion:
    """A row of `.../completions/{benchmark}.jsonl`: one completion, with its gold.

    `sample` counts from 0 within one `id` and `decoding`; `prompt_sha256` is the hash of the exact text that the
    model received; `finish_reason` is `stop` (end of sequence) or `length` (cut at the token limit).
    """

    id: str
    sample: int
    completion: str
    answer: str
    solution: str = ""
    decoding: Decoding = "sampled"
    prompt_sha256: str = ""
    finish_reason: str = ""


@dataclass(frozen=True)
class Grade:
    """A row of `.../grades/{benchmark}.jsonl`: the verdict on one completion, and its extracted answer.

    If `gold_parsable` is false, there was nothing to compare with (see `mcgrpo.grade.answers.Judgement`). `answer` (the
    gold) and `prompt_sha256` are those of the completion.
    """

    id: str
    sample: int
    extracted: str | None
    verdict: Verdict
    decoding: Decoding = "sampled"
    gold_parsable: bool = True
    answer: str | int | float | None = None
    prompt_sha256: str | None = None


@dataclass(frozen=True)
class Run:
    """`run.json` before training: everything that one training job needs.

    `training` has hyper-parameters with the names of TRL's `GRPOConfig`; `rewards` maps reward functions of
    `mcgrpo.grade.rewards` to their weights. A run of method `none` is the untrained model.
    """

    study: str
    setting: str
    method: str
    num_generations: int
    variant: str
    seed: int
    model: str
    dataset: str
    prompt: str
    task: str
    loss_type: str
    estimator: str
    rewards: dict[str, float]
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The run's folder in `results/{study}/runs`, and its name in MLflow."""
        return run_name(vars(self))


@dataclass(frozen=True)
class Group:
    """A row of `results/{study}/runs/{run}/groups.jsonl`: the numbers of one group of a training, in the order drawn.

    `step` is the first optimizer step that uses the group, `group` its index among those drawn for that step. The lists
    have a value per rollout: the reward (None if it could not be scored), the advantage, whether it was kept (0 or 1),
    and the length in tokens.
    """

    step: int
    group: int
    rewards: list[float | None]
    advantages: list[float]
    kept: list[int]
    lengths: list[int]


@dataclass(frozen=True)
class Rollout:
    """A row of `results/{study}/runs/{run}/rollouts.jsonl`: one rollout of a training, as text.

    `sample` counts from 0 within its group; `step` is as in `Group`. The `pivot` was left out as the median of its
    group; `length` is in tokens.
    """

    step: int
    prompt: str
    sample: int
    completion: str
    reward: float | None
    advantage: float
    kept: bool
    pivot: bool
    length: int
