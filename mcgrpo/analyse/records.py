"""The tables: what the analysis makes of runs and grades, and what reports are made from.

Each is a record, a row of a file, whose fields are the columns in their order. `mcgrpo.analyse.frames` reads the CSV
files. Fractions are in [0, 1].
"""

from dataclasses import dataclass, field, fields
from typing import Any

from mcgrpo.records import Decoding

GPUS = "gpus"
"""The measure with the number of GPUs that a training had to itself; 0 on the CPU."""
EXTRA_ROLLOUTS = "extra_rollouts"
"""The measure with the rollouts of each prompt beside G that a user-defined estimator drew."""
FIT_TOKENS, ASKED_TOKENS = "max_new_tokens", "asked_new_tokens"
"""The measures with the most tokens of a completion on a benchmark: as many as fit the context, as the study asks."""


def _logged(name: str) -> Any:
    """A column that is logged under this name in metrics.jsonl; empty where it was not."""
    return field(default=None, metadata={"logged": name})


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

    `rollouts` are drawn for the step, over all processes; empty for a step that draws none. `accuracy` is the share of
    them that is accurate; empty for such a step too, and without an accuracy reward. `reward` is the mean over ALL
    rollouts drawn, `reward_first` that over the first G of each prompt.
    """

    setting: str
    method: str
    num_generations: int
    variant: str
    seed: int
    step: int
    rollouts: float | None
    accuracy: float | None
    reward: float | None = _logged("drawn/reward")
    reward_first: float | None = _logged("drawn/reward_first")
    loss: float | None = _logged("loss")
    grad_norm: float | None = _logged("grad_norm")
    kl: float | None = _logged("kl")
    entropy: float | None = _logged("entropy")
    completion_length: float | None = _logged("completions/mean_length")
    frac_unscorable: float | None = _logged("drawn/frac_unscorable")
    advantage_abs_max: float | None = _logged("advantage/abs_max")
    frac_scale_zero: float | None = _logged("advantage/frac_scale_zero")
    frac_scale_zero_signal: float | None = _logged("advantage/frac_scale_zero_signal")
    frac_advantage_zero: float | None = _logged("advantage/frac_zero")
    frac_groups_zero: float | None = _logged("advantage/frac_groups_zero")
    frac_effective: float | None = _logged("advantage/frac_effective")
    kl_l1_share_logps: float | None = _logged("gradient/kl_l1_share_logps")
    flips_mean_median: float | None = _logged("flips/mean_median")
    flips_loo_mean: float | None = _logged("flips/loo_mean")
    flips_loo_median: float | None = _logged("flips/loo_median")
    clip_ratio: float | None = _logged("clip_ratio/region_mean")
    seconds_generation: float | None = _logged("seconds/generation")
    seconds_rewards: float | None = _logged("seconds/rewards")
    seconds_logprobs: float | None = _logged("seconds/logprobs")
    seconds_update: float | None = _logged("seconds/update")


LOGGED = {each.name: each.metadata["logged"] for each in fields(CurvePoint) if each.metadata}
"""Columns of curves.csv, and the names that they are logged under in metrics.jsonl."""


@dataclass(frozen=True)
class Cell:
    """A row of `summary.csv`: one measure of one cell (setting, method, G, variant) over its seeds.

    Every planned cell has rows; `seeds` of the `planned` ones are finished, and with none the numbers are empty. `low`
    and `high` bound the 95% interval of the mean, taken `over` "seeds and problems", "problems" (of one seed) or
    "seeds" (of a measure without problems); all three are empty if there is nothing to take it over. `decoding` is as
    in `Score`, and `published` the paper's number.

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
    decoding: str | None
    planned: int
    seeds: int
    n: int | None
    mean: float | None
    low: float | None
    high: float | None
    over: str | None
    published: float | None = None
    worst: float | None = None
    collapsed: float | None = None
    extra_rollouts: int | None = None


@dataclass(frozen=True)
class CellSignal:
    """A row of `signals.csv`: the exact signal of a cell's estimator at the rewards that one model gets.

    `source` is the run whose many rollouts give each prompt's reward probabilities, or the cell and the steps whose
    groups do (`mcgrpo.analyse.pass_rates`); `success` is their mean success rate over `prompts` or groups. `per_step`
    to `of_best` are fields of `mcgrpo.estimators.Signal`.

    `predicted` is `per_step` over that of the cell that this one is compared with, minus 1: `kind` as in `Contrast`,
    with the `baseline` (for a change: the variant). Beside it stands the measured gain of the cell's sampled accuracy
    (`measure`, on the benchmark that the rollouts are of), as in `Contrast`. Empty if the study plans no such cell, or
    where the estimator is the same.
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
    those of `mcgrpo.estimators.Signal`.
    """

    setting: str
    source: str
    method: str
    num_generations: int
    rate: float
    per_rollout: float
    objective: float


@dataclass(frozen=True)
class Contrast:
    """A row of `comparisons.csv`: two cells compared, or another weighted sum of cells, computed per seed and problem.

    Args:
        family: within which the verdict is corrected: `primary, BASELINE`, a table, `claim ID` of `config/claims.yaml`
            or `question ID` of the study; `average`, of primary ones, has none.
        kind: of a pair (`mcgrpo.analyse.pairs.Kind`); a claim's row has none.
        comparison: counts the comparisons of a claim from 1, each in one setting on one benchmark; 0 is its endpoint,
            which decides it: the average of all of them, or of those of one setting if some setting is enough.
        role: of the benchmark; as `decoding`, `method` to `other_measure` empty for a sum of more than two cells.
        method, num_generations, variant, measure: of the cell; `other_` those of the cell that is subtracted.
        unit: of `value`, its interval, `detectable` and the bounds: `fraction` for a pair, else that of the claim.
        value: with its 95% interval from `low` to `high`, taken `over` seeds, problems or both.
        seeds: of the cell that has fewest, or those that all of them have.
        detectable: the smallest true value that would have been distinguished from 0 (two-sided test at 5%, power 80%).
        p_holds: of the one-sided test that the truth lies from `at_least` to `at_most`, `p_fails` that it lies outside.
        p_equivalent: where the bound is 0, of the tests that it lies within the equivalence margin. None of the three
            is corrected.
        verdict: corrected within the family (`mcgrpo.analyse.verdicts`).
        comparisons: how many of a claim's are in the row.
        unjudged: why the value must not be judged.
        published: the difference that the paper prints or implies, and whether the interval excludes it.
        by_seed: the value of each seed that both cells have, in the order of seeds.
    """

    family: str
    kind: str | None = None
    comparison: int | None = None
    setting: str | None = None
    benchmark: str | None = None
    role: str | None = None
    decoding: str | None = None
    method: str | None = None
    num_generations: int | None = None
    variant: str | None = None
    measure: str | None = None
    other_method: str | None = None
    other_num_generations: int | None = None
    other_variant: str | None = None
    other_measure: str | None = None
    unit: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int | None = None
    over: str | None = None
    detectable: float | None = None
    p_holds: float | None = None
    p_fails: float | None = None
    p_equivalent: float | None = None
    verdict: str | None = None
    comparisons: int | None = None
    at_least: float | None = None
    at_most: float | None = None
    unjudged: str | None = None
    equivalence_margin: float | None = None
    published: float | None = None
    excludes_published: bool | None = None
    by_seed: str | None = None


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
