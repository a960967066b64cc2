"""The tables: what the analysis makes of runs and grades, and what reports are made from.

Each is a record, a row of a file, whose fields are the columns in their order. `mcgrpo.analyse.frames` reads the CSV
files. Fractions are in [0, 1].
"""

from dataclasses import dataclass

from mcgrpo.records import Decoding

GPUS = "gpus"
"""The measure with the number of GPUs that a training had to itself; 0 on the CPU."""
EXTRA_ROLLOUTS = "extra_rollouts"
"""The measure with the rollouts of each prompt beside G that somebody's own estimator drew."""
FIT_TOKENS, ASKED_TOKENS = "max_new_tokens", "asked_new_tokens"
"""The measures with the most tokens of a completion on a benchmark: as many as fit the context, as the study asks."""
LOGGED = {
    "reward": "drawn/reward",
    "reward_first": "drawn/reward_first",
    "loss": "loss",
    "grad_norm": "grad_norm",
    "kl": "kl",
    "entropy": "entropy",
    "completion_length": "completions/mean_length",
    "frac_unscorable": "drawn/frac_unscorable",
    "advantage_abs_max": "advantage/abs_max",
    "frac_scale_zero": "advantage/frac_scale_zero",
    "frac_scale_zero_signal": "advantage/frac_scale_zero_signal",
    "frac_advantage_zero": "advantage/frac_zero",
    "frac_groups_zero": "advantage/frac_groups_zero",
    "frac_effective": "advantage/frac_effective",
    "kl_l1_share_logps": "gradient/kl_l1_share_logps",
    "flips_mean_median": "flips/mean_median",
    "flips_loo_mean": "flips/loo_mean",
    "flips_loo_median": "flips/loo_median",
    "clip_ratio": "clip_ratio/region_mean",
    "seconds_generation": "seconds/generation",
    "seconds_rewards": "seconds/rewards",
    "seconds_logprobs": "seconds/logprobs",
    "seconds_update": "seconds/update",
}
"""Columns of curves.csv, and the names that they are logged under in metrics.jsonl."""


@dataclass(frozen=True)
class Measure:
    """A measure by its name, with a value for each problem; `problems` as in `Score`.

    Lines of `flips/{run}/{benchmark}.jsonl` are sign-flip rates, with names of `mcgrpo.analyse.sign_flips`.
    """

    measure: str
    values: list[float]
    problems: str


@dataclass(frozen=True)
class Score:
    """A line of `scores.jsonl`: one measure of one run on one benchmark.

    `value` is the mean of `values`, one for each of `n` problems, and `problems` a hash of their ids in this order:
    rows with the same hash are paired by position. Measures of a training have no values, and n is its steps.
    `decoding` says of what decoding this is the accuracy (`greedy` or `avg@k`); other measures have none.
    """

    setting: str
    method: str
    num_generations: int
    variant: str
    seed: int
    benchmark: str
    role: str
    measure: str
    value: float
    n: int
    values: list[float] | None = None
    problems: str = ""
    decoding: Decoding | None = None


@dataclass(frozen=True)
class CurvePoint:
    """A row of `curves.csv`: one optimizer step of one run.

    `rollouts` are drawn for the step, over all processes, and `accuracy` is the share of them that is accurate; both
    are empty for a step that draws none, and without an accuracy reward. `reward` is the mean over ALL rollouts drawn,
    `reward_first` that over the first G of each prompt.
    """

    setting: str
    method: str
    num_generations: int
    variant: str
    seed: int
    step: int
    rollouts: float | None
    accuracy: float | None
    reward: float | None = None
    reward_first: float | None = None
    loss: float | None = None
    grad_norm: float | None = None
    kl: float | None = None
    entropy: float | None = None
    completion_length: float | None = None
    frac_unscorable: float | None = None
    advantage_abs_max: float | None = None
    frac_scale_zero: float | None = None
    frac_scale_zero_signal: float | None = None
    frac_advantage_zero: float | None = None
    frac_groups_zero: float | None = None
    frac_effective: float | None = None
    kl_l1_share_logps: float | None = None
    flips_mean_median: float | None = None
    flips_loo_mean: float | None = None
    flips_loo_median: float | None = None
    clip_ratio: float | None = None
    seconds_generation: float | None = None
    seconds_rewards: float | None = None
    seconds_logprobs: float | None = None
    seconds_update: float | None = None


@dataclass(frozen=True)
class Cell:
    """A row of `summary.csv`: one measure of one cell (setting, method, G, variant) over its seeds.

    Every planned cell has rows; `seeds` of the `planned` ones are finished, and with none the numbers are empty. `low`
    and `high` bound the 95% interval of the mean, taken `over` "seeds and problems", "problems" (of one seed) or
    "seeds" (of a measure without problems); all three are empty if there is nothing to take it over.

    Paired differences have their own interval, over the seeds and problems that both cells share, the number of shared
    seeds, and, for accuracies with an interval, a `mcgrpo.analyse.stats.gain_verdict` by the study's
    `equivalence_margin`. The `detectable` one is the smallest true difference that this many seeds and problems would
    have shown (two-sided test at 5%, power 80%).

    - `difference`: from `baseline`, the method that this one is compared with, at the same setting, G and variant;
      empty if the study plans none. `difference_excludes_published`: whether its interval excludes what the paper
      prints (or implies) for it, `published_difference`. `published` is the paper's number for the cell.
    - `change`: from the same method and G under the variant `default`.
    - `same_rollouts`: from the mean-centred method of the same loss under the variant `default` at the
      `same_rollouts_generations`: the G, other than the cell's own or with another number of prompts, at which a
      training draws as many rollouts. Both are empty if there is none.

    `worst` is the value of the lowest seed, and `collapsed` the share of seeds that have collapsed
    (`mcgrpo.analyse.summarise.COLLAPSE`); for accuracies only. `extra_rollouts` are drawn of each prompt beside G.
    """

    setting: str
    method: str
    num_generations: int
    variant: str
    benchmark: str
    role: str
    measure: str
    planned: int
    seeds: int
    n: int | None
    mean: float | None
    low: float | None
    high: float | None
    over: str | None
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
    difference_verdict: str | None = None
    difference_detectable: float | None = None
    difference_excludes_published: bool | None = None
    change_verdict: str | None = None
    change_detectable: float | None = None
    equivalence_margin: float | None = None
    same_rollouts_generations: int | None = None
    same_rollouts: float | None = None
    same_rollouts_low: float | None = None
    same_rollouts_high: float | None = None
    same_rollouts_seeds: int | None = None
    same_rollouts_verdict: str | None = None
    same_rollouts_detectable: float | None = None
    worst: float | None = None
    collapsed: float | None = None
    extra_rollouts: int | None = None


@dataclass(frozen=True)
class Gain:
    """A row of `gains.csv`: the share of one seed in `difference` or `change` (`kind`) of its cell in `summary.csv`.

    `baseline` is the method (for a change: the variant) that the cell is compared with at the same seed, and `gain` the
    value of the cell minus that of the baseline; for an accuracy, a fraction.
    """

    setting: str
    method: str
    num_generations: int
    variant: str
    seed: int
    benchmark: str
    role: str
    measure: str
    kind: str
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
    kind: str | None = None
    baseline: str | None = None
    predicted: float | None = None
    measure: str | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    gain_verdict: str | None = None


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
    (`mcgrpo.analyse.claims.questions`), computed per seed and problem.

    `comparison` counts the comparisons of the claim from 1, each in one setting on one benchmark. It is 0 for the
    endpoint, which decides the claim: the average of all of them, or of those of one setting if some setting is enough.

    `low` and `high` bound the 95% interval of `value`, in the unit of the claim; empty if there is none. `p_holds` is
    the p-value of the one-sided test that the truth lies within the bounds of the claim, `p_fails` that it lies
    outside; `p_equivalent`, if the bound is 0 points, that it lies within the study's `equivalence_margin` of 0. None
    is corrected for the number of tests. `detectable` is the smallest true value that would have been distinguished
    from 0, `unjudged` the reason why the value must not be judged. `at_least` and `at_most` are the bounds tested,
    averaged over the measured `comparisons`; empty if there are none.
    """

    claim: str
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
    comparisons: int | None = None
    at_least: float | None = None
    at_most: float | None = None
    p_equivalent: float | None = None


@dataclass(frozen=True)
class Published:
    """A row of `config/published.csv`: one number that the paper prints.

    `table` is the label in its source (`main`, `dapo`, `drgrpo`, `ood`, `composite`, `control`, `text`), `line` the
    line there; names are those of `config/config.yaml`, without a setting if the paper names none. `value` is in the
    printed unit (`measure` accuracy: percent, or seconds), `gain` is the difference printed beside it, and `rollouts`
    the number of rollouts as printed.
    """

    table: str
    line: int
    setting: str | None
    method: str
    num_generations: int
    variant: str
    benchmark: str
    measure: str
    value: float
    gain: float | None = None
    rollouts: str | None = None
    note: str | None = None
