"""Comparisons of claims are formed per seed and problem: their values, intervals and p-values."""

import math

import numpy as np
import pytest
from claim_rows import cell, claim, claims_of, gain, pair, scores_of
from scipy import stats
from study_frames import plan_of, score, values_of, write_scores

from mcgrpo import shipped
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts, estimate, main
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import Contrast, Score
from mcgrpo.analyse.summarise import summarise
from mcgrpo.files import write_json, write_jsonl


def rows_of(tmp_path, row, *cells):
    scores = scores_of(*cells)
    return contrasts(claims_of(tmp_path, row), scores, {key.without_measure for key in scores})


def gap(*weighted, **bound):
    terms = [{"method": method, "num_generations": budget, "weight": weight} for method, budget, weight in weighted]
    return claim({"terms": terms} | (bound or {"above": 0}))


FIRST_MINUS_SECOND = gap(("grpo", 8, 1), ("grpo", 2, -1))


def t_limits(values):
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return pytest.approx((interval.low, interval.high), abs=1e-6)


def welch_limits(ours, theirs):
    interval = stats.ttest_ind(100 * ours, 100 * theirs, equal_var=False).confidence_interval(0.95)
    return pytest.approx((interval.low, interval.high), abs=1e-6)


def seeds_by_problems(seed=0, shape=(5, 200), chance=0.6):
    return (np.random.default_rng(seed).random(shape) < chance).astype(float)


def test_several_cells_are_one_contrast_per_seed(tmp_path):
    """Whatever its weights: noise that the cells share is in none of its interval."""
    shared = np.array([0.1, -0.1, 0.05, 0.0, -0.05])
    own = np.random.default_rng(0).normal(scale=0.002, size=(4, 5))
    weights = {("mc-grpo", 8): 1, ("mc-grpo", 2): -1, ("grpo", 8): -0.5, ("grpo", 2): 0.5}
    cells = [cell(method, budget, 0.5 + shared + noise) for (method, budget), noise in zip(weights, own, strict=True)]
    single, primary = rows_of(tmp_path, gap(*((*key, weight) for key, weight in weights.items())), *cells)
    by_seed = 100 * np.array(list(weights.values())) @ (shared + own)
    assert single.value == pytest.approx(by_seed.mean()) and single.high - single.low < 1
    assert (single.low, single.high) == t_limits(by_seed)
    assert (primary.value, primary.low, primary.high) == (single.value, single.low, single.high)


def test_several_cells_are_one_contrast_per_problem(tmp_path):
    """One seed: the interval is over problems, and pairs them; there is no test."""
    ours, theirs = seeds_by_problems(1, (1, 400)), seeds_by_problems(2, (1, 400))
    same = np.where(np.arange(400) % 10, theirs, ours)  # nine of ten answers are shared
    single, primary = rows_of(tmp_path, FIRST_MINUS_SECOND, cell("grpo", 8, same), cell("grpo", 2, theirs))
    assert (single.low, single.high) == t_limits(100 * (same - theirs)[0])
    assert (single.seeds, single.over, single.detectable) == (1, "problems", None)
    assert {single.p_holds, single.p_fails, primary.p_holds, primary.p_fails} == {1.0}


def test_gains_over_one_baseline_cancel_it(tmp_path):
    """It need not even be there."""
    over = {"num_generations": 2, "field": "difference"}
    terms = [{"method": "grpo-plus1", **over}, {"method": "mc-grpo", **over, "weight": -1}]
    plus1, median, mean = 0.5 + np.random.default_rng(3).normal(scale=[[0.01], [0.01], [0.2]], size=(3, 5))
    cells = [cell("grpo-plus1", 2, plus1), cell("mc-grpo", 2, median), cell("grpo", 2, mean)]
    for there in (cells, cells[:2]):
        single, _ = rows_of(tmp_path, claim({"below": 0, "terms": terms}), *there)
        assert (single.low, single.high) == t_limits(100 * (plus1 - median))


def written(tmp_path, rows, spread=0.0, claims=None):
    """Contrasts as every reader gets them: by the command, through the file."""
    claims_of(tmp_path, claim(gain(above=0)))
    write_json(tmp_path / "plan.json", plan_of(rows))
    write_jsonl(tmp_path / "values.jsonl", values_of(rows, spread))
    files = {"plan": "plan.json", "scores": write_scores(tmp_path, rows).name, "values": "values.jsonl"}
    options = [part for name, file in files.items() for part in (f"--{name}", str(tmp_path / file))]
    main([*options, "--claims", str(claims or tmp_path / "claims.yaml"), "--output", str(tmp_path / "contrasts.csv")])
    return read_frame(tmp_path / "contrasts.csv", Contrast)


def test_a_single_gain_has_the_interval_of_the_summary(tmp_path):
    bases = {"grpo": 0.5, "mc-grpo": 0.53}
    rows = [score(m, 2, s, base + shift) for m, base in bases.items() for s, shift in enumerate((0, 0.02, 0))]
    found = written(tmp_path, rows, 0.3)
    scores = read_frame(write_scores(tmp_path, rows), Score)
    cells = summarise(plan_of(rows), scores, values_of(rows, 0.3)).cells
    (ours,) = [each for each in cells if each.measure == "greedy" and each.method == "mc-grpo"]
    (single,) = [row for row in found.itertuples() if row.claim == "it" and row.kind == "single"]
    expected = (ours.difference, ours.difference_low, ours.difference_high, ours.difference_detectable)
    numbers = (single.value, single.low, single.high, single.detectable)
    assert numbers == pytest.approx([100 * each for each in expected], abs=1e-6)


def test_the_projects_claims_are_evaluated_from_files(tmp_path):
    rows = [score(m, g, s, 0.5 + g / 100) for m in ("grpo", "mc-grpo") for g in (2, 4, 8) for s in range(3)]
    found = written(tmp_path, rows, 0.1, shipped.CLAIMS)
    assert found.claim.drop_duplicates().tolist() == [
        each.id for each in read_claims(shipped.CLAIMS) if not each.unjudged
    ]
    gains = found[(found.claim == "grpo-gains") & (found.kind == "single")]
    assert gains.value.tolist() == [0.0, 0.0] and (gains.low < 0).all()
    with pytest.raises(SystemExit, match=r"error: .*none.json: no such file"):
        main(["--plan", "none.json", "--scores", "x", "--values", "x", "--claims", "x", "--output", "x"])


@pytest.mark.parametrize("seeds", [[5, 6, 7, 8], [3, 4, 5, 6]])
def test_cells_that_share_at_most_one_seed_are_independent(tmp_path, seeds):
    ours, theirs = np.random.default_rng(4).normal(0.5, 0.03, size=(2, 4))
    single, _ = rows_of(tmp_path, FIRST_MINUS_SECOND, cell("grpo", 8, ours), cell("grpo", 2, theirs, seeds=seeds))
    assert (single.low, single.high) == welch_limits(ours, theirs)
    assert single.over == "seeds, seeds unpaired"


def test_a_late_setting_does_not_make_an_endpoint_certain(tmp_path):
    """One seed beside five: what it adds to the error is not known, which is not to say that it is nothing."""
    base, gains = np.linspace(0.3, 0.7, 40), [0.05, 0.02, 0.04, 0.01, 0.06]

    def setting(name, seeds):
        ours = cell("mc-grpo", 2, [base + each for each in gains[:seeds]], setting=name)
        return ours, cell("grpo", 2, [base] * seeds, setting=name)

    *_, primary = rows_of(tmp_path, claim(gain(above=0)), *setting("a", 5), *setting("b", 1))
    assert (primary.p_holds, primary.p_fails) == (1.0, 1.0)
    *_, primary = rows_of(tmp_path, claim(gain(above=0)), *setting("a", 5), *setting("b", 2))
    assert 0 < primary.p_holds < 0.5


def test_an_untrained_model_has_no_noise_of_seeds_and_is_none_of_a_training(tmp_path):
    trained, untrained = seeds_by_problems(6, (3, 200), 0.7), seeds_by_problems(7, (1, 200), 0.6)
    alone, _ = rows_of(tmp_path, gap(("none", 0, 1), above=20), cell("none", 0, untrained))
    assert alone.p_holds < 0.025
    cells = cell("grpo", 2, trained), cell("none", 0, untrained)
    single, _ = rows_of(tmp_path, gap(("grpo", 2, 1), ("none", 0, -1)), *cells)
    assert (single.seeds, single.over) == (3, "seeds and problems")
    scores = scores_of(*cells)
    result, _, _ = estimate({key: 1.0 if key.method == "grpo" else -1.0 for key in scores}, scores)
    assert result.freedom > 100 and single.p_holds == pytest.approx(stats.t.sf(result.mean / result.error, 2))


def test_a_ratio_is_of_logarithms_by_seed(tmp_path):
    of, names = {"role": "train", "measure": "seconds"}, {"numerator": "mc-grpo", "denominator": "grpo"}
    sides = {name: {"method": method, "num_generations": 4, **of} for name, method in names.items()}
    base = np.array([100.0, 140.0, 90.0, 300.0, 110.0])  # seeds that ran on slower machines
    factor = np.array([1.18, 1.2, 1.22, 1.19, 1.21])
    cells = [cell("mc-grpo", 4, base * factor, benchmark="train", **of), cell("grpo", 4, base, benchmark="train", **of)]
    single, _ = rows_of(tmp_path, claim({"at_most": 1.5, "ratio": sides}), *cells)
    logs = stats.ttest_1samp(np.log(factor), 0).confidence_interval(0.95)
    assert single.value == pytest.approx(stats.gmean(factor))
    assert (single.low, single.high) == pytest.approx((math.exp(logs.low), math.exp(logs.high)))
    assert single.p_holds < 1e-5 < single.p_fails


def test_settings_are_averaged_and_their_trainings_independent(tmp_path):
    first, second = pair(0.02, 0.01, setting="a"), pair(0.04, 0.03, setting="b")
    *singles, pooled, primary = rows_of(tmp_path, claim(gain(above=0)), first, second)
    assert [row.value for row in singles] == pytest.approx([2.0, 4.0])
    assert (pooled.kind, primary.kind, pooled.value) == ("pooled", "primary", pytest.approx(3.0))
    errors = np.array([1.0, 3.0]) / stats.t.ppf(0.975, 4) / 2
    freedom = (errors**2).sum() ** 2 / (errors**4 / 4).sum()
    half = stats.t.ppf(0.975, freedom) * math.hypot(*errors)
    assert (pooled.low, pooled.high) == pytest.approx((3 - half, 3 + half), abs=1e-5)


def test_settings_on_the_same_problems_share_them():
    values = seeds_by_problems(5, (3, 300))
    ours = {"a": values, "b": 1 - values}
    scores = scores_of(*(cell("grpo", 2, values, setting=name) for name, values in ours.items()))
    apart = scores_of(*(cell("grpo", 2, values, setting=name, benchmark=name) for name, values in ours.items()))
    same, other = (estimate(dict.fromkeys(each, 0.5), each)[0] for each in (scores, apart))
    assert same.error < other.error


def test_the_endpoint_is_the_average_of_all_comparisons_or_of_the_one_named(tmp_path):
    cells = [pair(0.02, budget=2), pair(0.06, budget=4)]
    asked = gain(2, at_least=0), gain(4, at_least=1)
    found = [rows_of(tmp_path, claim(*asked, **primary), *cells)[-1] for primary in ({}, {"primary": 2})]
    assert [(row.comparison, round(row.value, 6)) for row in found] == [(0, 4.0), (2, 6.0)]


def test_nothing_solved_is_not_certain(tmp_path):
    single, _ = rows_of(tmp_path, gap(("grpo", 2, 1), at_most=5), cell("grpo", 2, np.zeros((5, 30))))
    assert (single.low, single.high) == pytest.approx((0.0, 100 * (1 - 0.025 ** (1 / 30))))
    assert single.p_holds == pytest.approx(0.95**30)


def test_p_values_are_of_one_sided_tests_at_the_bounds(tmp_path):
    t = stats.t(4, loc=2, scale=1 / stats.t.ppf(0.975, 4)).cdf
    expected = {
        ("above", 0): (t(0), 1 - t(0)),
        ("at_most", 3): (1 - t(3), t(3)),
        ("within", 2): (max(t(-2), 1 - t(2)), min(1 - t(-2), t(2))),
    }
    for bound, p_values in expected.items():
        single, _ = rows_of(tmp_path, claim(gain(**dict([bound]))), pair(0.02, 0.01))
        assert (single.p_holds, single.p_fails) == pytest.approx(p_values, abs=1e-6)
