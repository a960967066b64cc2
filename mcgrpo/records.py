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

PROTOCOLS = ("paper", "released", "robust")
"""Protocols of evaluation; each grades the same completions."""

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
    model received; `finish_reason` is `stop` (end of sequence) or `length` (cut at the token limit). This limit is
    `max_new_tokens`: the study's `asked_new_tokens`, or as many as fit the model's context.
    """

    id: str
    sample: int
    completion: str
    answer: str
    solution: str = ""
    decoding: Decoding = "sampled"
    prompt_sha256: str = ""
    finish_reason: str = ""
    max_new_tokens: int | None = None
    asked_new_tokens: int | None = None


@dataclass(frozen=True)
class Grade:
    """A row of `.../grades/{benchmark}.jsonl`: the verdict on one completion, and its extracted answer.

    These are by the first protocol that the file was graded by, which is `paper` in a study; a verdict by another one
    is `verdict_released` or `verdict_robust`. `finish_reason`, `answer` (the gold) and `prompt_sha256` are those of the
    completion; an older file lacks them. If `gold_parsable` is false, there was nothing to compare with (see
    `mcgrpo.grade.task.Judgement`).
    """

    id: str
    sample: int
    extracted: str | None
    verdict: Verdict
    decoding: Decoding = "sampled"
    gold_parsable: bool = True
    finish_reason: str = ""
    answer: str | int | float | None = None
    prompt_sha256: str | None = None
    verdict_released: Verdict | None = None
    verdict_robust: Verdict | None = None


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


@dataclass(frozen=True)
class TrainingData:
    """A data set that a training read: its path, the SHA-256 of the file, and the rows of the split.

    `rows` are those that it used; `left_out` had prompts that are too long.
    """

    path: str
    sha256: str
    rows: int
    left_out: int = 0


@dataclass(frozen=True)
class InitialModel:
    """The folder that a training starts from, one SHA-256 over the sums of its files, and its `source.json`, if any."""

    path: str
    sha256: str
    source: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """`outcome` of a run.json: what a training ran with, how far it is, and how it ended.

    Args:
        started: in seconds since the epoch, of its first attempt.
        seconds: of all attempts.
        steps: optimizer steps; 0 until it has finished.
        selected_step: that of the weights, where a checkpoint is selected.
        gpus: that it had to itself; 0 on the CPU.
        rollouts: the engine that drew them.
        commit: of the code, with `-dirty` where the work tree differs from it; None if that is unknown.
        versions: of packages.
        test: the data set whose test split selected the checkpoint, where one is selected.
        rollout_tables: which rollouts were written down as text.
        sums: the SHA-256 of each file that it left, by its name in the run's folder.
        error: why it failed.
    """

    status: Literal["running", "failed", "finished"]
    started: float
    seconds: float = 0.0
    steps: int = 0
    selected_step: int | None = None
    gpus: int = 0
    rollouts: str = ""
    commit: str | None = None
    device: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    data: TrainingData | None = None
    test: TrainingData | None = None
    model: InitialModel | None = None
    rollout_tables: dict[str, int] | None = None
    sums: dict[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether it was trained to its end."""
        return self.status == "finished"


@dataclass(frozen=True)
class SignFlips:
    """How the sign flips of a run are measured: on `rollouts` of each of `prompts` problems of a benchmark."""

    benchmark: str
    prompts: int
    rollouts: int
    subset_sizes: list[int]
    temperature: float


@dataclass(frozen=True)
class PlannedRun:
    """One run, the benchmarks that it is evaluated on with their roles, and how its sign flips are measured, if so."""

    run: Run
    evaluated: dict[str, Role]
    flips: SignFlips | None = None


@dataclass(frozen=True)
class PrimaryComparison:
    """A primary comparison of the study's method: with a baseline at one G, in each of these settings."""

    baseline: str
    num_generations: int
    settings: list[str]


@dataclass(frozen=True)
class Primary:
    """What a study's answer rests on: its measure (`greedy` or `avg@k`), and its comparisons."""

    measure: str
    comparisons: list[PrimaryComparison]


@dataclass(frozen=True)
class Plan:
    """`plan.json`: a study, expanded.

    Args:
        runs: every run once, by its name in alphabetical order.
        benchmarks: setting -> benchmark -> its role there.
        evaluations: run -> benchmark -> its role, of all on which it is evaluated.
        flips: run -> how its sign flips are measured, of those whose are.
        grading: protocols of evaluation, names of `PROTOCOLS`, the first of them `paper`.
        equivalence_margin: a difference of accuracies that counts as none; a fraction.
        measures: the accuracies that a report shows, `greedy` and `avg@k`.
        selections: name -> the variants that it selects from (`mcgrpo.analyse.selections`).
        questions: what the study asks beside the paper's claims, as in the study file (`mcgrpo.analyse.claims`).
    """

    study: str
    runs: list[Run]
    benchmarks: dict[str, dict[str, Role]]
    evaluations: dict[str, dict[str, Role]]
    flips: dict[str, SignFlips]
    grading: list[str]
    equivalence_margin: float
    measures: list[str]
    primary: Primary
    selections: dict[str, list[str]] = field(default_factory=dict)
    questions: list[dict[str, Any]] = field(default_factory=list)
