import math
from dataclasses import replace

import numpy as np
import pytest
from claim_rows import cell, claim, claims_of, gain, pair, scores_of
from scipy import stats
from study_frames import plan_of, score, write_scores

from mcgrpo import shipped
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.comparisons import main
from mcgrpo.analyse.contrasts import contrasts, estimate_sum
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import Contrast
from mcgrpo.study.planned import write_plan


def rows_of(tmp_path, row, *cells):
    scores = scores_of(*cells)
    return contrasts(claims_of(tmp_path, row), scores, {key.without_measure for key in scores})


def gap(*weighted, **bound):
    terms = [{"method": method, "num_generations": budget, "weight": weight} for method, budget, weight in weighted]
    return {"terms": terms} | (bound or {"above": 0})


def t_limits(values):
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return pytest.approx((interval.low, interval.high), abs=1e-6)


def seeds_by_problems(seed=0, shape=(5, 200), chance=0.6):
    return (np.random.default_rng(seed).random(shape) < chance).astype(float)


def test_several_cells_are_one_contrast_per_seed(tmp_path):
    """Whatever its weights: noise that the cells share is in none of its interval."""
    shared = np.array([0.1, -0.1, 0.05, 0.0, -0.05])
    own = np.random.default_rng(0).normal(scale=0.002, size=(4, 5))
    weights = {("mc-grpo", 8): 1, ("mc-grpo", 2): -1, ("grpo", 8): -0.5, ("grpo", 2): 0.5}
    cells = [cell(method, budget, 0.5 + shared + noise) for (method, budget), noise in zip(weights, own, strict=True)]
    row = claim(gap(*((*key, weight) for key, weight in weights.items())))
    single, endpoint = rows_of(tmp_path, row, *cells)
    by_seed = 100 * np.array(list(weights.values())) @ (shared + own)
    assert single.value == pytest.approx(by_seed.mean())
    assert (single.low, single.high) == t_limits(by_seed)
    assert (endpoint.value, endpoint.low, endpoint.high) == (single.value, single.low, single.high)
    assert single.high - single.low < 1


def test_several_cells_are_one_contrast_per_problem(tmp_path):
    """One seed: the interval is over problems, and pairs them."""
    ours, theirs = seeds_by_problems(1, (1, 400)), seeds_by_problems(2, (1, 400))
    same = np.where(np.arange(400) % 10, theirs, ours)  # nine of ten answers are shared
    single, _ = rows_of(
        tmp_path, claim(gap(("grpo", 8, 1), ("grpo", 2, -1))), cell("grpo", 8, same), cell("grpo", 2, theirs)
    )
    assert (single.low, single.high) == t_limits(100 * (same - theirs)[0])
    assert (single.seeds, single.over) == (1, "problems")


def test_gains_are_spelt_out_as_their_cells(tmp_path):
    """The baselines of two gains are one cell where they are the same: they cancel, and need not be there."""
    over = {"num_generations": 2, "field": "difference"}
    terms = [{"method": "grpo-plus1", **over}, {"method": "mc-grpo", **over, "weight": -1}]
    plus1, median = 0.5 + np.random.default_rng(3).normal(scale=0.01, size=(2, 5))
    row = claim({"below": 0, "terms": terms})
    single, _ = rows_of(tmp_path, row, cell("grpo-plus1", 2, plus1), cell("mc-grpo", 2, median))
    assert (single.low, single.high) == t_limits(100 * (plus1 - median))


def test_a_gain_that_is_not_planned_leaves_nothing_to_judge(tmp_path):
    """Spelt out, it would cancel itself: the gain at G=2 is not the claim's."""
    terms = [*gain(2)["terms"], gain(8)["terms"][0] | {"weight": -1}]
    (single,) = rows_of(tmp_path, claim({"above": 0, "terms": terms}), pair(0.02))
    assert (single.comparison, single.value) == (1, None)


def test_the_projects_claims_are_evaluated_from_files(tmp_path):
    rows = [score(m, g, s, 0.5 + g / 100) for m in ("grpo", "mc-grpo") for g in (2, 4, 8) for s in range(3)]
    write_plan(tmp_path / "plan.json", plan_of(rows))
    write_scores(tmp_path, rows, 0.1)
    main(["--results", str(tmp_path)])
    found = read_frame(tmp_path / "comparisons.csv", Contrast)
    judged = [f"claim {each.id}" for each in read_claims(shipped.CLAIMS) if not each.unjudged]
    assert found[found.kind.isna()].family.drop_duplicates().tolist() == judged
    gains = found[(found.family == "claim grpo-gains") & (found.comparison > 0)]
    assert gains.value.tolist() == [0.0, 0.0] and (gains.low < 0).all()
    assert set(gains.decoding) == {"greedy"} and set(gains.other_method) == {"grpo"}


@pytest.mark.parametrize("seeds", [[5, 6, 7, 8], [3, 4, 5, 6]], ids=["none", "one"])
def test_cells_that_share_no_seeds_or_one_of_several_are_compared_over_their_own(tmp_path, seeds):
    ours, theirs = np.random.default_rng(4).normal(0.5, 0.03, size=(2, 4))
    row = claim(gap(("grpo", 8, 1), ("grpo", 2, -1)))
    single, _ = rows_of(tmp_path, row, cell("grpo", 8, ours), cell("grpo", 2, theirs, seeds=seeds))
    welch = stats.ttest_ind(100 * ours, 100 * theirs, equal_var=False).confidence_interval(0.95)
    assert (single.low, single.high) == pytest.approx((welch.low, welch.high), abs=1e-6)
    assert single.over == "seeds, seeds unpaired"


def pair_of(base, gains, seeds, setting="toy"):
    """A method whose gains are given seed by seed, and its baseline."""
    ours = cell("mc-grpo", 2, [base + each for each in gains], seeds=seeds, setting=setting)
    return ours, cell("grpo", 2, [base] * len(seeds), seeds=seeds, setting=setting)


def test_a_late_setting_does_not_make_an_endpoint_certain(tmp_path):
    """One seed beside five: what it adds to the error is not known, which is not to say that it is nothing."""
    base, gains = np.linspace(0.3, 0.7, 40), [0.05, 0.02, 0.04, 0.01, 0.06]
    early, late = pair_of(base, gains, range(5), "a"), pair_of(base, gains[:1], [0], "b")
    *_, endpoint = rows_of(tmp_path, claim(gain(above=0)), *early, *late)
    assert (endpoint.p_holds, endpoint.p_fails) == (1.0, 1.0)
    *_, endpoint = rows_of(tmp_path, claim(gain(above=0)), *early, *pair_of(base, gains[:2], [0, 1], "b"))
    assert 0 < endpoint.p_holds < 0.5


def test_an_untrained_model_has_no_noise_of_seeds(tmp_path):
    values = seeds_by_problems(5, (1, 300))
    row = claim({"above": 20, "terms": [{"method": "none", "num_generations": 0}]})
    single, _ = rows_of(tmp_path, row, cell("none", 0, values))
    assert single.p_holds < 0.025


def test_its_one_row_is_no_seed_of_a_training_that_it_is_compared_with(tmp_path):
    trained, untrained = seeds_by_problems(6, (3, 200), 0.7), seeds_by_problems(7, (1, 200), 0.6)
    cells = cell("grpo", 2, trained), cell("none", 0, untrained)
    single, _ = rows_of(tmp_path, claim(gap(("grpo", 2, 1), ("none", 0, -1))), *cells)
    assert (single.seeds, single.over) == (3, "seeds and problems")
    scores = scores_of(*cells)
    result, _, _ = estimate_sum({key: 1.0 if key.method == "grpo" else -1.0 for key in scores}, scores)
    t = result.mean / result.standard_error
    assert result.degrees_of_freedom > 100 and single.p_holds == pytest.approx(stats.t.sf(t, 2))


def test_a_ratio_is_of_logarithms_by_seed(tmp_path):
    of = {"role": "train", "measure": "seconds"}
    sides = [{"method": method, "num_generations": 4, **of} for method in ("mc-grpo", "grpo")]
    base = np.array([100.0, 140.0, 90.0, 300.0, 110.0])  # seeds that ran on slower machines
    factor = np.array([1.18, 1.2, 1.22, 1.19, 1.21])
    times = {"benchmark": "train", **of}
    single, _ = rows_of(
        tmp_path, claim({"at_most": 1.5, "ratio": sides}),
        cell("mc-grpo", 4, base * factor, **times), cell("grpo", 4, base, **times),
    )  # fmt: skip
    logs = stats.ttest_1samp(np.log(factor), 0).confidence_interval(0.95)
    assert single.value == pytest.approx(stats.gmean(factor))
    assert (single.low, single.high) == pytest.approx((math.exp(logs.low), math.exp(logs.high)))
    assert single.p_holds < 1e-5 < single.p_fails


def test_settings_are_averaged_and_their_trainings_independent(tmp_path):
    first, second = pair(0.02, 0.01, setting="a"), pair(0.04, 0.03, setting="b")
    *singles, endpoint = rows_of(tmp_path, claim(gain(above=0)), first, second)
    assert [row.value for row in singles] == pytest.approx([2.0, 4.0])
    assert (endpoint.comparison, endpoint.setting, endpoint.value) == (0, None, pytest.approx(3.0))
    errors = np.array([1.0, 3.0]) / stats.t.ppf(0.975, 4) / 2
    freedom = (errors**2).sum() ** 2 / (errors**4 / 4).sum()
    half = stats.t.ppf(0.975, freedom) * math.hypot(*errors)
    assert (endpoint.low, endpoint.high) == pytest.approx((3 - half, 3 + half), abs=1e-5)


def test_settings_on_the_same_problems_share_them():
    ours = {"a": seeds_by_problems(5, (3, 300)), "b": None}
    ours["b"] = 1 - ours["a"]
    scores = scores_of(*(cell("grpo", 2, values, setting=name) for name, values in ours.items()))
    same, *_ = estimate_sum(dict.fromkeys(scores, 0.5), scores)
    apart = scores_of(*(cell("grpo", 2, values, setting=name, benchmark=name) for name, values in ours.items()))
    other, over, _ = estimate_sum(dict.fromkeys(apart, 0.5), apart)
    assert same.standard_error < other.standard_error
    assert over == "seeds and problems"


def test_the_endpoint_is_the_average_of_all_comparisons_or_that_of_a_setting_where_some_is_enough(tmp_path):
    cells = [pair(0.02, budget=2), pair(0.06, budget=4)]
    endpoint = rows_of(tmp_path, claim(gain(2, at_least=0), gain(4, at_least=1)), *cells)[-1]
    assert (endpoint.comparison, endpoint.value) == (0, pytest.approx(4.0))
    gains = {("a", "x"): 0.02, ("a", "y"): 0.06, ("b", "x"): 0.05}
    cells = [pair(mean, setting=setting, benchmark=benchmark) for (setting, benchmark), mean in gains.items()]
    rows = rows_of(tmp_path, claim(gain(above=0), quantifier="some"), *cells)
    assert {row.setting: row.value for row in rows if not row.comparison} == pytest.approx({"a": 4.0, "b": 5.0})


def test_the_average_of_the_steps_of_one_change_has_the_margin_of_the_change(tmp_path):
    """From G=2 to 4 and from 4 to 8: half of the change from 2 to 8, within half a point where that is within one."""
    cells = [cell("grpo", size, 0.5 + 0.001 * noise) for size, noise in zip((2, 4, 8), np.eye(3, 5), strict=True)]
    steps = [gap(("grpo", 2, 1), ("grpo", 4, -1)), gap(("grpo", 4, 1), ("grpo", 8, -1))]
    *_, endpoint = rows_of(tmp_path, claim(*steps), *cells)
    _, whole = rows_of(tmp_path, claim(gap(("grpo", 2, 1), ("grpo", 8, -1))), *cells)
    assert endpoint.value == pytest.approx(whole.value / 2)
    assert endpoint.p_equivalent == pytest.approx(whole.p_equivalent)
    apart = [gap(("grpo", 2, 1), ("grpo", 8, -1)), gap(("grpo", 4, 1), ("grpo", 8, -1))]
    *_, average = rows_of(tmp_path, claim(*apart), *cells)
    weights = {cells[0][0]: 0.5, cells[1][0]: 0.5, cells[2][0]: -1.0}
    assert average.p_equivalent == pytest.approx(estimate_sum(weights, scores_of(*cells))[0].p_within(0.01))


def test_tests_of_a_single_comparison_have_at_most_seeds_less_one_degrees_of_freedom(tmp_path):
    """As the pairs of the tables: its interval may have more, where most of its noise is that of problems."""
    ours, theirs = np.random.default_rng(0).random((2, 3, 50))
    cells = [cell("mc-grpo", 2, ours), cell("grpo", 2, theirs)]
    single, _ = rows_of(tmp_path, claim(gain(above=0)), *cells)
    (mine, _), (base, _) = cells
    result, _, _ = estimate_sum({mine: 1.0, base: -1.0}, scores_of(*cells))
    assert single.high == pytest.approx(100 * result.limits()[1]) and result.degrees_of_freedom > 2
    tested = replace(result, degrees_of_freedom=2)
    assert (single.p_holds, single.p_equivalent) == (tested.p_value(0.0, "greater"), tested.p_within(0.01))
    assert single.detectable == pytest.approx(100 * tested.detectable)


@pytest.mark.parametrize(("measure", "has_margin"), [("reward_first", True), ("reward_unsteadiness", False)])
def test_a_measure_without_a_margin_is_not_tested_for_equivalence(tmp_path, measure, has_margin):
    row = claim(gap(("mc-grpo", 2, 1), ("grpo", 2, -1)))
    for term in row["comparisons"][0]["terms"]:
        term |= {"role": "train", "measure": measure}
    single, _ = rows_of(tmp_path, row, pair(0.002, role="train", benchmark="train", measure=measure))
    assert (single.p_equivalent is not None) == has_margin


@pytest.mark.parametrize(
    ("bound", "p_holds", "p_fails"),
    [
        ({"above": 0}, lambda t: t(0), lambda t: 1 - t(0)),
        ({"at_most": 3}, lambda t: 1 - t(3), lambda t: t(3)),
        ({"within": 2}, lambda t: max(t(-2), 1 - t(2)), lambda t: min(1 - t(-2), t(2))),
    ],
)
def test_p_values_are_of_one_sided_tests_at_the_bounds(tmp_path, bound, p_holds, p_fails):
    single, _ = rows_of(tmp_path, claim(gain(**bound)), pair(0.02, 0.01))
    at = stats.t(4, loc=2, scale=1 / stats.t.ppf(0.975, 4)).cdf
    assert (single.p_holds, single.p_fails) == pytest.approx((p_holds(at), p_fails(at)), abs=1e-6)
