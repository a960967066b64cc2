"""The records of tables: what the analysis makes of runs and grades, and what reports are made from.

As in `mcgrpo.records`, each is a row of a file, and its fields are the columns in their order.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from mcgrpo.records import Role, RunKey

IntervalOver = Literal["seeds and problems", "problems", "seeds"]
"""What an interval is taken over: problems only with one seed, seeds only if the measure has no problems."""
GainVerdict = Literal["better", "worse", "equivalent", "inconclusive"]
"""The verdict on a gain in accuracy (`mcgrpo.analyse.stats.gain_verdict`)."""
GPUS = "gpus"
"""The measure with the number of GPUs that a training had to itself; 0 on the CPU."""
EXTRA_ROLLOUTS = "extra_rollouts"
"""The measure with the rollouts of each prompt beside G that somebody's own estimator drew."""
ContrastKind = Literal["single", "pooled", "primary", "setting"]


@dataclass(frozen=True)
class FlipRates:
    """A row of `results/{study}/flips/{run}/{benchmark}.jsonl`: the sign-flip rate of each prompt under one convention.

    `measure` has the form of `mcgrpo.analyse.flip_measures.measure_name`; `problems` as in `Score`.
    """

    measure: str
    values: list[float]
    problems: str


@dataclass(frozen=True)
class Score(RunKey):
    """A line of `scores.jsonl`: one measure of one run on one benchmark.

    `value` is the mean of `values`, one for each of `n` problems, and `problems` a hash of their ids in this order:
    rows with the same hash are paired by position. Measures of a training have no values, and n is its steps.
    """

    benchmark: str
    role: Role
    measure: str
    value: float
    n: int
    values: list[float] | None = None
    problems: str = ""


def logged(name: str, is_mean: bool = False) -> Any:
    """A column of curves.csv by its name in metrics.jsonl; whether its mean over steps measures the training."""
    return field(metadata={"logged": name, "is_mean": is_mean})


@dataclass(frozen=True)
class CurvePoint(RunKey):
    """A row of `curves.csv`: one optimizer step of one run. `reward` is the mean over ALL rollouts drawn,
    `reward_first` that over the first G of each prompt.

    `rollouts` are drawn for the step, over all processes, and `accuracy` is the share of them that is accurate; both
    are empty for a step that draws none, and without an accuracy reward.
    """

    step: int
    rollouts: float | None
    accuracy: float | None
    reward: float | None = logged("drawn/reward", is_mean=True)
    reward_first: float | None = logged("drawn/reward_first", is_mean=True)
    loss: float | None = logged("loss")
    grad_norm: float | None = logged("grad_norm", is_mean=True)
    kl: float | None = logged("kl")
    entropy: float | None = logged("entropy")
    completion_length: float | None = logged("completions/mean_length")
    frac_unscorable: float | None = logged("drawn/frac_unscorable", is_mean=True)
    advantage_abs_max: float | None = logged("advantage/abs_max", is_mean=True)
    frac_scale_zero: float | None = logged("advantage/frac_scale_zero", is_mean=True)
    frac_scale_zero_signal: float | None = logged("advantage/frac_scale_zero_signal", is_mean=True)
    frac_advantage_zero: float | None = logged("advantage/frac_zero", is_mean=True)
    frac_groups_zero: float | None = logged("advantage/frac_groups_zero", is_mean=True)
    frac_effective: float | None = logged("advantage/frac_effective", is_mean=True)
    kl_l1_share_logps: float | None = logged("gradient/kl_l1_share_logps", is_mean=True)
    flips_mean_median: float | None = logged("flips/mean_median", is_mean=True)
    flips_loo_mean: float | None = logged("flips/loo_mean", is_mean=True)
    flips_loo_median: float | None = logged("flips/loo_median", is_mean=True)
    clip_ratio: float | None = logged("clip_ratio/region_mean", is_mean=True)
    seconds_generation: float | None = logged("seconds/generation")
    seconds_rewards: float | None = logged("seconds/rewards")
    seconds_logprobs: float | None = logged("seconds/logprobs")
    seconds_update: float | None = logged("seconds/update")


@dataclass(frozen=True)
class Cell:
    """A row of `summary.csv`: one measure of one cell (setting, method, G, variant) over its seeds.

    Every planned cell has rows; `seeds` of the `planned` ones are finished, and with none the numbers are empty. `low`
    and `high` bound the 95% interval of the mean, taken over `over`; all three are empty if there is nothing to take it
    over (one seed of a measure without problems). Fractions are in [0, 1].

    Paired differences have their own interval, over the seeds and problems that both cells share, and the number of
    shared seeds: `difference` from `baseline` (the method that this one is compared with, at the same setting, G and
    variant; empty if the study plans none), and `change` from the same method and G under the variant `default`.

    `published` is the number that the paper prints for the cell, on the same scale; `published_difference` the one it
    prints (or implies) for `difference`; `difference_excludes_published` whether the interval of `difference` excludes
    it.

    `same_rollouts` is the paired difference from the mean-centred method of the same loss under the variant `default`
    at `same_rollouts_generations`: the G, other than the cell's own or with another number of prompts, at which a
    training draws as many rollouts. Both are empty if there is none.

    `worst` is the value of the lowest seed, and `collapsed` the share of seeds that are more than
    `mcgrpo.analyse.stability.COLLAPSE` below the median seed of the mean-centred method; for accuracies only.
    `extra_rollouts` are drawn of each prompt beside G.

    `difference_verdict` and `change_verdict` are given for accuracies with an interval, using the study's
    `equivalence_margin`; empty otherwise. `difference_detectable` and `change_detectable` are the smallest true
    difference that this many seeds and problems would have shown (two-sided test at 5%, power 80%), on its scale.
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
    same_rollouts_generations: int | None = None
    same_rollouts: float | None = None
    same_rollouts_low: float | None = None
    same_rollouts_high: float | None = None
    same_rollouts_seeds: int | None = None
    same_rollouts_verdict: GainVerdict | None = None
    same_rollouts_detectable: float | None = None
    worst: float | None = None
    collapsed: float | None = None
    extra_rollouts: int | None = None


@dataclass(frozen=True)
class Gain(RunKey):
    """A row of `gains.csv`: the share of one seed in `difference` or `change` (`kind`) of its cell in `summary.csv`.

    `baseline` is the method (for a change: the variant) that the cell is compared with at the same seed, and `gain` the
    value of the cell minus that of the baseline; for an accuracy, a fraction.
    """

    benchmark: str
    role: Role
    measure: str
    kind: Literal["difference", "change"]
    baseline: str
    gain: float


@dataclass(frozen=True)
class CellSignal:
    """A row of `signals.csv`: the exact signal of a cell's estimator at the rewards that one model gets.

    `source` is the run whose many rollouts give each prompt's reward probabilities, or the cell and the steps whose
    groups do (`mcgrpo.analyse.pass_rates`); `success` is their mean success rate over `prompts` or groups. `per_step`
    to `of_best` are fields of `mcgrpo.estimators.Signal`.

    `predicted` is `per_step` over that of the cell that this one is compared with, minus 1: `kind` and `baseline` as in
    `Gain`. Beside it stands the measured gain of the cell's sampled accuracy (`measure`, on the benchmark that the
    rollouts are of), as in `Cell`. Empty if the study plans no such cell, or where the estimator is the same.
    """

    setting: str
    source: str
    method: str
    num_generations: int
    variant: str
    drawn: int
    prompts: int
    success: float
    per_step: float
    per_rollout: float
    per_row: float
    of_best: float
    kind: Literal["difference", "change"] | None = None
    baseline: str | None = None
    predicted: float | None = None
    measure: str | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    gain_verdict: GainVerdict | None = None


@dataclass(frozen=True)
class SignalPoint:
    """A row of `signal_curves.csv`: the signal of a method on a prompt with success rate `rate`.

    Successes are spread over the levels of reward as in the rollouts of `source`. `per_rollout` and `objective` are
    those of `mcgrpo.estimators.Signal`; `slope` is what the objective gains by a higher success rate, over what it does
    at a rate of 1/2.
    """

    setting: str
    source: str
    method: str
    num_generations: int
    rate: float
    per_rollout: float
    slope: float
    objective: float


@dataclass(frozen=True)
class Contrast:
    """A row of `contrasts.csv`: a comparison of a claim of `config/claims.yaml`, or of the answer
    (`mcgrpo.analyse.answer`), computed per seed and problem.

    `comparison` counts the comparisons of the claim from 1, and is 0 for the average of all. A `single` one is for one
    setting and benchmark, a `pooled` one the average of these; `primary` is the endpoint that decides the claim, and
    `setting` the endpoint of one setting, if some setting is enough. Only single ones have a benchmark.

    `low` and `high` bound the 95% interval of `value`, in the unit of the claim; empty if there is none. `p_holds` is
    the p-value of the one-sided test that the truth lies within the bounds of the claim, `p_fails` that it lies
    outside; `p_equivalent`, if the bound is 0 points, that it lies within the study's `equivalence_margin` of 0. None
    is corrected for the number of tests. `detectable` is the smallest true value that would have been distinguished
    from 0, `unjudged` the reason why the value must not be judged. `at_least` and `at_most` are the bounds tested,
    averaged over the measured `comparisons`; empty if there are none.
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
    p_equivalent: float | None = None


@dataclass(frozen=True)
class Published:
    """A row of `config/published.csv`: one number that the paper prints.

    `table` is the label in its source (`main`, `dapo`, `drgrpo`, `ood`, `composite`, `control`, `text`), `line` the
    line there; names are those of `config/config.yaml`, without a setting if the paper names none. `value` is in the
    printed unit (`accuracy`: percent, `seconds`), `gain` is the difference printed beside it, and `rollouts` the number
    of rollouts as printed.
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
