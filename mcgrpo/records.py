"""The contract: one typed record for every file that passes between rules.

Data flows one way (study file -> runs -> completions -> grades -> scores -> summary -> tables, figures), and each
arrow is a file of the records below. JSONL files hold one record a line; CSV files hold one record a row, in the
order of the fields. This module imports nothing of ours and only the standard library, so every stage can use it.
"""

import typing
from dataclasses import dataclass, field
from typing import Any, Literal

Decoding = Literal["greedy", "sampled"]
Verdict = Literal["correct", "equivalent", "wrong", "unparseable", "timeout", "error"]
VERDICTS: tuple[str, ...] = typing.get_args(Verdict)
Role = Literal["in", "out", "train", "flips"]
"""What a benchmark is to a setting: in distribution, out of distribution, the training itself (seconds, reward), or
the source of many rollouts a prompt, on which sign-flip rates are measured."""
IntervalOver = Literal["seeds and problems", "problems", "seeds"]
"""What an interval is taken over. Problems alone: there was one seed. Seeds alone: the measure has no problems."""
GainVerdict = Literal["better", "worse", "equivalent", "inconclusive"]
"""What may be said of a gain in accuracy (`mcgrpo.analyse.stats.gain_verdict`)."""
GPUS = "gpus"
"""The measure of a training that says how many GPUs it had to itself; 0 on the CPU."""
ContrastKind = Literal["single", "pooled", "primary", "setting"]

PROTOCOL_SUFFIXES = {"paper": "", "released": ".released", "robust": ".robust"}
"""Protocols of evaluation; each grades the same completions, into `grades/{run}/{benchmark}{suffix}.jsonl`."""


@dataclass(frozen=True)
class Example:
    """A row of `resources/data/{dataset}.jsonl`: one problem, its short answer and, where it has one, its solution."""

    id: str
    split: str
    question: str
    answer: str
    solution: str = ""


@dataclass(frozen=True)
class Completion:
    """A row of `.../completions/{benchmark}.jsonl`: one completion, with the gold it is to be graded against.

    `sample` counts from 0 within one `id` and `decoding`; `prompt_sha256` is the hash of the exact text that the
    model was given; `finish_reason` is `stop` (end of sequence) or `length` (cut at the token limit).
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
    """A row of `.../grades/{benchmark}.jsonl`: the verdict on one completion, and the answer it was given for.

    Without `gold_parsable` there was nothing to compare with (see `mcgrpo.grade.answers.Judgement`).
    """

    id: str
    sample: int
    extracted: str | None
    verdict: Verdict
    decoding: Decoding = "sampled"
    gold_parsable: bool = True


@dataclass(frozen=True)
class Run:
    """`run.json` before training: everything one training job needs (and nothing about any other job).

    `training` holds hyper-parameters under the names of TRL's `GRPOConfig`; `rewards` maps reward functions of
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
        """The run's folder below `results/{study}/runs`, and its name in MLflow."""
        return f"{self.setting}/{self.method}/G{self.num_generations}/{self.variant}/seed{self.seed}"


@dataclass(frozen=True)
class Group:
    """A row of `results/{study}/runs/{run}/groups.jsonl`: the numbers of one group of a training, in the order drawn.

    `step` is the first optimizer step that the group is used for, `group` its place among those drawn for it. Of each
    of its rollouts: the reward (None where it could not be scored), the advantage, whether it was kept (0 or 1), and
    the length in tokens.
    """

    step: int
    group: int
    rewards: list[float | None]
    advantages: list[float]
    kept: list[int]
    lengths: list[int]


@dataclass(frozen=True)
class Rollout:
    """A row of `results/{study}/runs/{run}/rollouts.jsonl`: one rollout of a training, to be read.

    `sample` counts from 0 within its group, whose first `step` is that of `Group`. The `pivot` is left out as the
    median of its group; `flipped` is said of a sign against the oracle (`mcgrpo.train.rollout_files.is_flipped`), which
    is the mean reward of many more rollouts of the prompt. Both are None where there was none; `length` is in tokens.
    """

    step: int
    prompt: str
    sample: int
    completion: str
    reward: float | None
    advantage: float
    kept: bool
    pivot: bool
    flipped: bool | None
    length: int
    oracle: float | None = None


@dataclass(frozen=True)
class RunKey:
    """Which run a row belongs to; see `Run`."""

    setting: str
    method: str
    num_generations: int
    variant: str
    seed: int


@dataclass(frozen=True)
class FlipRates:
    """A row of `results/{study}/flips/{run}/{benchmark}.jsonl`: the sign-flip rate of each prompt under one convention.

    `measure` is spelt by `mcgrpo.analyse.sign_flips.measure_name`; `problems` as in `ProblemValues`.
    """

    measure: str
    values: list[float]
    problems: str


@dataclass(frozen=True)
class Score(RunKey):
    """A row of `scores.csv`: one measure of one run on one benchmark, over `n` problems (or steps, for `train`).

    `standard_error` is that of a mean over problems; empty for a measure that is none.
    """

    benchmark: str
    role: Role
    measure: str
    value: float
    n: int
    standard_error: float | None = None


@dataclass(frozen=True)
class ProblemValues(RunKey):
    """A row of `values.jsonl`: what one measure of one run is the mean of, a value per problem.

    `problems` is a hash of the problems' ids in the order of `values`: rows of one hash are paired by position.
    """

    benchmark: str
    role: Role
    measure: str
    values: list[float]
    problems: str


@dataclass(frozen=True)
class CurvePoint(RunKey):
    """A row of `curves.csv`: one optimizer step of one run. `reward` is the mean over ALL rollouts drawn."""

    step: int
    reward: float | None
    loss: float | None
    grad_norm: float | None
    kl: float | None
    entropy: float | None
    completion_length: float | None
    advantage_abs_max: float | None
    frac_scale_zero: float | None
    frac_scale_zero_signal: float | None
    frac_advantage_zero: float | None
    frac_groups_zero: float | None
    kl_l1_share_logps: float | None
    flips_mean_median: float | None
    flips_loo_mean: float | None
    flips_loo_median: float | None
    seconds_generation: float | None
    seconds_rewards: float | None
    seconds_logprobs: float | None
    seconds_update: float | None


@dataclass(frozen=True)
class Cell:
    """A row of `summary.csv`: one measure of one cell (setting, method, G, variant) over its seeds.

    Every planned cell has its rows: `seeds` of the `planned` ones are there, and at none the numbers are empty.
    `low` and `high` bound the 95% interval of the mean, taken over what `over` says; all three are empty where there
    is nothing to take it over (one seed of a measure without problems). Fractions are in [0, 1].

    Paired differences, each with its own interval over what the two cells share (seeds, problems) and the number of
    shared seeds: `difference` to `baseline` (the method this one is compared with, at the same setting, G and
    variant; empty where the study plans none), and `change` to the same method and G under the variant `default`.

    `published` is the number that the paper prints for the cell, on the same scale; `published_difference` the one it
    prints (or implies) for `difference`, and `difference_excludes_published` whether the interval of `difference` lies
    to one side of it.

    `difference_verdict` and `change_verdict` are of accuracies that have an interval, and empty for all else; they
    were given with `equivalence_margin`, the study's.
    `difference_detectable` and `change_detectable` are the smallest true difference that so many seeds and problems
    would have shown (two-sided test at 5%, power 80%), on the scale of the measure.
    """

    setting: str
    method: str
    num_generations: int
    variant: str
    benchmark: str
    role: Role
    measure: str
    planned: int
    seeds: int
    n: int | None
    mean: float | None
    low: float | None
    high: float | None
    over: IntervalOver | None
    baseline: str | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    difference_seeds: int | None
    change: float | None
    change_low: float | None
    change_high: float | None
    change_seeds: int | None
    published: float | None = None
    published_difference: float | None = None
    difference_verdict: GainVerdict | None = None
    difference_detectable: float | None = None
    difference_excludes_published: bool | None = None
    change_verdict: GainVerdict | None = None
    change_detectable: float | None = None
    equivalence_margin: float | None = None


@dataclass(frozen=True)
class Gain(RunKey):
    """A row of `gains.csv`: what one seed adds to `difference` or `change` (`kind`) of its cell in `summary.csv`.

    `baseline` is the method (of a change: the variant) that the cell is compared with at the same seed, and `gain` the
    cell's value less the baseline's: of an accuracy a fraction.
    """

    benchmark: str
    role: Role
    measure: str
    kind: Literal["difference", "change"]
    baseline: str
    gain: float


@dataclass(frozen=True)
class Contrast:
    """A row of `contrasts.csv`: a comparison of a claim of `config/claims.yaml`, formed per seed and problem.

    `comparison` counts the claim's comparisons from 1, and is 0 for the average of all. A `single` one is of one
    setting and benchmark, a `pooled` one the average of these; `primary` is the endpoint that decides on the claim, and
    `setting` the endpoint of one setting, where some setting is enough. All but singles have no benchmark.

    `low` and `high` bound the 95% interval of `value`, in the unit of the claim; empty where there is none. `p_holds`
    is the p-value of the one-sided test that the truth lies within the claim's bounds, `p_fails` that it lies outside,
    neither corrected for the number of tests. `detectable` is the smallest true value that would have been told from 0,
    `unjudged` why the value must not be judged. `at_least` and `at_most` are the bounds that are tested, averages over
    the `comparisons` that are measured; empty where there is none.
    """

    claim: str
    kind: ContrastKind
    comparison: int
    setting: str | None
    benchmark: str | None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p_holds: float | None = None
    p_fails: float | None = None
    seeds: int | None = None
    over: str | None = None
    detectable: float | None = None
    unjudged: str | None = None
    comparisons: int = 1
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Published:
    """A row of `config/published.csv`: one number that the paper prints.

    `table` is the label in its source (`main`, `dapo`, `drgrpo`, `ood`, `composite`, `control`, `text`), `line` the
    line there; names are those of `config/config.yaml`, without a setting where the paper names none. `value` has the
    unit it is printed in (`accuracy`: percent, `seconds`), `gain` is the difference printed beside it, and `rollouts`
    how its row spells the rollouts drawn.
    """

    table: str
    line: int
    setting: str | None
    method: str
    num_generations: int
    variant: str
    benchmark: str
    measure: Literal["accuracy", "seconds"]
    value: float
    gain: float | None = None
    rollouts: str | None = None
    note: str | None = None
