from pathlib import Path

import numpy as np
import pytest
from claim_rows import cell, claim, claims_of, endpoint, gain, pair, ruled, scores_of
from hypothesis import given
from hypothesis import strategies as st

from mcgrpo.analyse.claims import Comparison, Term, read_claims
from mcgrpo.analyse.contrasts import contrasts, p_values
from mcgrpo.analyse.records import Contrast
from mcgrpo.analyse.stats import Estimate
from mcgrpo.report.claims.judge import holm, judge, verdicts
from mcgrpo.report.claims.tables import evidence

ROOT = Path(__file__).parents[2]
CLAIMS, PUBLISHED = ROOT / "config/claims.yaml", ROOT / "config/published.csv"
OURS = read_claims(CLAIMS)


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        ((0.02, 0.01), "holds"),
        ((0.02, 0.03), "inconclusive"),
        ((-0.02, 0.01), "fails"),
        ((0.0, 0.0), "fails"),
        ((0.01, 0.0101), "inconclusive"),
    ],
)
def test_a_gain_is_judged_by_its_own_paired_interval(tmp_path, difference, expected):
    assert ruled(tmp_path, claim(gain(above=0)), pair(*difference)).verdict == expected


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ({"at_least": 1, "at_most": 3}, "holds"),
        ({"at_least": 2.4, "at_most": 4}, "inconclusive"),
        ({"at_least": 3.5, "at_most": 9}, "fails"),
        ({"within": 3}, "holds"),
        ({"within": 2}, "inconclusive"),
        ({"within": 1}, "fails"),
        ({"below": 3}, "holds"),
        ({"below": 2.4}, "inconclusive"),
        ({"below": 1.4}, "fails"),
        ({"at_most": 1.6}, "inconclusive"),
    ],
)
def test_bounds(tmp_path, bound, expected):
    assert ruled(tmp_path, claim(gain(**bound)), pair(0.02, 0.005)).verdict == expected


def test_rewards_are_not_turned_into_points(tmp_path):
    of = {"role": "train", "measure": "reward_first"}
    row = claim({"above": 0, "terms": [{"method": "mc-grpo", "num_generations": 2, "field": "difference", **of}]})
    (finding,) = ruled(tmp_path, row, pair(0.25, 0.1, benchmark="train", **of)).findings
    assert (finding.value, finding.unit) == (pytest.approx(0.25), "reward_first")


def test_holms_correction_by_hand():
    # 0.01 x 3; 0.02 x 2; 0.03 x 1 is raised to the one before.
    assert holm([0.02, 0.03, 0.01]) == pytest.approx([0.04, 0.04, 0.03])
    assert holm([0.9, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


def test_single_comparisons_are_corrected_for_their_number(tmp_path):
    """One that would fail alone is no contradiction among twenty."""
    row = claim(gain(at_least=0))
    bad = pair(-0.02, 0.019, setting="bad")
    assert ruled(tmp_path, row, bad).verdict == "fails"
    even = [pair(0.0, 0.01, setting=f"s{n}") for n in range(19)]
    among = ruled(tmp_path, row, bad, *even)
    assert {finding.verdict for finding in among.findings} == {"inconclusive"}
    assert among.verdict == "equivalent"  # by their average
    worse = pair(-0.08, 0.019, setting="bad")
    assert ruled(tmp_path, row, worse, *even).verdict == "fails"


def test_the_endpoint_decides_and_one_comparison_can_contradict_it(tmp_path):
    good, unsure, bad = (pair(mean, 0.01, setting=name) for name, mean in (("a", 0.04), ("b", 0.0), ("c", -0.03)))
    row = claim(gain(above=0))
    assert ruled(tmp_path, row, good).verdict == "holds"
    held = ruled(tmp_path, row, good, unsure)
    assert [finding.verdict for finding in held.findings] == ["holds", "inconclusive"]
    assert (held.verdict, endpoint(held).verdict, endpoint(held).value) == ("holds", "holds", pytest.approx(2.0))
    contradicted = ruled(tmp_path, row, good, good_too(), unsure, bad)
    assert (contradicted.verdict, endpoint(contradicted).verdict) == ("fails", "holds")
    some = row | {"quantifier": "some"}
    assert ruled(tmp_path, some, good, unsure, bad).verdict == "holds"
    assert ruled(tmp_path, some, unsure, bad).verdict == "inconclusive"
    assert ruled(tmp_path, some, bad).verdict == "fails"


def good_too():
    return pair(0.08, 0.01, setting="d")


def test_an_endpoint_may_be_one_named_comparison(tmp_path):
    cells = pair(0.03, 0.01, budget=2), pair(0.0, 0.03, budget=4)
    row = claim(gain(2, above=0), gain(4, above=0))
    assert ruled(tmp_path, row, *cells).verdict == "inconclusive"
    assert ruled(tmp_path, row | {"primary": 2}, *cells).verdict == "inconclusive"
    assert ruled(tmp_path, row | {"primary": 1}, *cells).verdict == "holds"


def test_an_inconclusive_gain_says_what_could_have_been_seen(tmp_path):
    ruling = ruled(tmp_path, claim(gain(above=0)), pair(0.01, 0.02))
    # 3.761 / 2.776 times the half-width: quantiles of the noncentral and of the central t.
    assert evidence(ruling).endswith("claimed > 0, 5 seeds (could have shown 2.7 points).")


def test_some_settings_are_corrected_for_their_number(tmp_path):
    row = claim(gain(at_least=3), quantifier="some")
    lucky = pair(0.05, 0.019, setting="lucky")
    assert ruled(tmp_path, row, lucky).verdict == "holds"
    assert ruled(tmp_path, row, lucky, *[pair(0.0, 0.01, setting=f"s{n}") for n in range(19)]).verdict == "inconclusive"


def test_every_comparison_must_hold_in_the_same_setting_where_some_is_enough(tmp_path):
    row = claim(gain(2, above=0), gain(4, above=0), quantifier="some")
    apart = [
        pair(mean, 0.01, budget=budget, setting=setting)
        for setting, means in (("a", (0.05, -0.04)), ("b", (-0.04, 0.05)))
        for budget, mean in zip((2, 4), means, strict=True)
    ]
    assert ruled(tmp_path, row, *apart).verdict == "fails"
    assert ruled(tmp_path, row, apart[0]).verdict == "not measured"


def test_a_claim_is_not_measured_until_each_comparison_is_and_fails_before(tmp_path):
    row = claim(gain(2, above=0), gain(4, above=0))
    ruling = ruled(tmp_path, row, pair(0.03))
    assert ruling.verdict == "not measured"
    assert "not measured anywhere: gain of MC-GRPO at G=4" in evidence(ruling)
    assert ruled(tmp_path, row, pair(-0.03)).verdict == "fails"
    assert ruled(tmp_path, row).verdict == "not measured"


def test_a_setting_without_a_term_is_named_and_the_others_are_judged(tmp_path):
    gap = {
        "above": 0,
        "terms": [{"method": "grpo", "num_generations": 8}, {"weight": -1, "method": "grpo", "num_generations": 2}],
    }
    high, low = [0.91, 0.9, 0.9, 0.9, 0.9], 0.1
    planned = [cell("grpo", g, setting=name) for name, g in (("b", 8), ("c", 2), ("c", 8))]
    cells = [cell("grpo", 8, high, setting="a"), cell("grpo", 2, low, setting="a"), cell("grpo", 2, low, setting="b")]
    ruling = ruled(tmp_path, claim(gap), *cells, planned=planned)
    assert ruling.verdict == "holds"
    assert "not measured in b/sums, c/sums" in evidence(ruling)


def test_a_claim_about_named_settings_is_taken_nowhere_else(tmp_path):
    row = claim(gain(above=0), settings=["a"])
    cells = [pair(0.03, setting=name) for name in ("a", "b")]
    assert [finding.setting for finding in ruled(tmp_path, row, *cells).findings] == ["a"]
    assert ruled(tmp_path, row, cells[1]).verdict == "not measured"


def test_every_benchmark_of_a_role_counts(tmp_path):
    row = claim(
        {"above": 0, "terms": [{"method": "mc-grpo", "num_generations": 2, "role": "out", "field": "difference"}]}
    )
    cells = [
        pair(0.03, benchmark="x", role="out"),
        pair(-0.03, benchmark="y", role="out"),
        pair(0.03, benchmark="z"),
    ]
    ruling = ruled(tmp_path, row, *cells)
    assert [(finding.benchmark, finding.verdict) for finding in ruling.findings] == [("x", "holds"), ("y", "fails")]
    assert "toy/y: gain of MC-GRPO at G=2 is −3.0 [−4.0, −2.0] points" in evidence(ruling)


def test_one_seed_says_so_and_without_an_interval_nothing_is_claimed(tmp_path):
    row = claim({"above": 0, "terms": [{"method": "grpo", "num_generations": 2}]})
    one = ruled(tmp_path, row, cell("grpo", 2, [[0.0, 1.0] * 20]))
    assert one.verdict == "inconclusive"
    assert evidence(one).endswith("1 seed; one seed: interval over problems only.")
    none = ruled(tmp_path, row, cell("grpo", 2, [0.5]))
    assert none.verdict == "inconclusive"
    assert "without an interval nothing is claimed" in evidence(none)
    scores = scores_of(cell("grpo", 2, [0.5]))
    claims = claims_of(tmp_path, row)
    printed = contrasts(claims, scores, {key.without_measure for key in scores}, printed=True)
    assert judge(claims, printed, "published")[0].verdict == "holds"


def test_what_all_seeds_agree_on_is_certain_where_there_are_no_problems(tmp_path):
    """A share of completions that a method makes 0 in every step."""
    of = {"role": "train", "measure": "frac_advantage_zero"}
    for bound, expected in (({"at_most": 0}, "holds"), ({"below": 0}, "fails"), ({"above": -1}, "holds")):
        row = claim({**bound, "terms": [{"method": "mc-grpo", "num_generations": 2, **of}]})
        assert ruled(tmp_path, row, cell("mc-grpo", 2, 0.0, benchmark="train", **of)).verdict == expected


def test_a_change_is_to_the_default_variant(tmp_path):
    row = claim(
        {"at_most": -3, "terms": [{"method": "grpo", "num_generations": 8, "variant": "flip-0.05", "field": "change"}]}
    )
    seeds = np.array([0.5, 0.52, 0.48, 0.51, 0.49])
    flipped = cell("grpo", 8, seeds - np.array([0.04, 0.042, 0.038, 0.04, 0.04]), variant="flip-0.05")
    ruling = ruled(tmp_path, row, flipped, cell("grpo", 8, seeds))
    assert ruling.verdict == "holds"
    assert "change of GRPO at G=8 (flip-0.05) is −4.0 [−4.2, −3.8] points, claimed ≤ −3" in evidence(ruling)


def test_contrasts_of_another_file_of_claims_are_refused(tmp_path):
    one, two = claim(gain(2, above=0)), claim(gain(2, above=0), gain(4, above=0))
    scores = scores_of(pair(0.03))
    rows = contrasts(claims_of(tmp_path, one), scores, {key.without_measure for key in scores})
    with pytest.raises(ValueError, match="claim it: it has 2 comparisons, but 1 have been evaluated"):
        judge(claims_of(tmp_path, two), rows, "ours")


@given(
    value=st.floats(-50, 50),
    half=st.floats(0.01, 20),
    low=st.floats(-50, 50),
    width=st.floats(0, 40),
    wider=st.floats(0, 30),
)
def test_a_looser_bound_never_turns_holds_or_a_tighter_one_fails(value, half, low, width, wider):
    def at(a, b):
        comparison = Comparison((Term("grpo", 2),), low=a, high=b)
        p = p_values(comparison, Estimate(value / 100, 3, half / 430, 2.0))
        return verdicts([Contrast("it", "single", 1, "toy", "sums", value, p_holds=p[0], p_fails=p[1])])[0]

    tight, loose = at(low, low + width), at(low - wider, low + width + wider)
    order = ["fails", "inconclusive", "holds"]
    assert order.index(tight) <= order.index(loose)


def test_a_bound_on_both_sides_holds_where_every_comparison_does(tmp_path):
    """Losses and gains of two points average to nothing, and are not within one point of it."""
    row = claim(gain(within=1))
    up, down, small = (pair(mean, 0.004, setting=name) for mean, name in ((0.009, "a"), (-0.009, "b"), (0.001, "c")))
    ruling = ruled(tmp_path, row, up, down)
    assert (endpoint(ruling).verdict, ruling.verdict) == ("holds", "inconclusive")
    assert ruled(tmp_path, row, small, pair(-0.001, 0.004, setting="d")).verdict == "holds"
    assert ruled(tmp_path, row, pair(0.018, 0.004, setting="a"), pair(-0.018, 0.004, setting="b")).verdict == "fails"
    some = row | {"quantifier": "some"}
    assert ruled(tmp_path, some, up, small).verdict == "holds"
    cancel = claim(gain(2, within=1), gain(4, within=1), quantifier="some")
    pairs = [pair(mean, 0.004, budget=budget) for mean, budget in ((0.009, 2), (-0.009, 4))]
    assert ruled(tmp_path, cancel, *pairs).verdict == "inconclusive"


def test_that_some_setting_is_enough_fails_once_every_setting_is_measured(tmp_path):
    row = claim(gain(above=0), quantifier="some")
    bad = pair(-0.03, setting="a")
    planned = pair(0.03, setting="b")
    assert ruled(tmp_path, row, bad).verdict == "fails"
    assert ruled(tmp_path, row, bad, planned=planned).verdict == "not measured"
    assert ruled(tmp_path, row, pair(0.03, setting="a"), planned=planned).verdict == "holds"


def test_the_bound_that_is_printed_is_the_one_that_is_tested(tmp_path):
    """Of two comparisons one is measured in two settings, the other in one: their bounds weigh as their values do."""
    row = claim(gain(2, at_least=0), gain(4, at_least=3))
    cells = pair(0.02, budget=2, setting="a"), pair(0.02, budget=2, setting="b"), pair(0.05, budget=4, setting="a")
    ruling = ruled(tmp_path, row, *cells)
    assert (endpoint(ruling).value, endpoint(ruling).threshold) == (pytest.approx(3.0), "≥ 1")
    assert endpoint(ruling).margin == pytest.approx(2.0)
    assert endpoint(ruled(tmp_path, row, *cells[:2])).comparison == "average of 1 comparison"


def test_what_is_measured_alone_is_not_corrected(tmp_path):
    """Of two settings one has its cells: one test, at the level of one."""
    row = claim(gain(above=0))
    ruling = ruled(tmp_path, row, pair(0.02, 0.018, setting="a"), planned=pair(0.02, setting="b"))
    assert [finding.verdict for finding in ruling.findings] == ["holds", "not measured"]


def test_corrected_comparisons_do_not_say_what_they_could_have_shown(tmp_path):
    ruling = ruled(tmp_path, claim(gain(above=0)), *[pair(0.01, 0.02, setting=name) for name in "ab"])
    assert evidence(ruling).count("could have shown") == 1  # of the endpoint, which is not corrected


def test_the_endpoint_of_the_best_setting_is_printed_where_one_is_enough(tmp_path):
    row = claim(gain(above=0), quantifier="some")
    ruling = ruled(tmp_path, row, pair(0.02, 0.016, setting="a"), pair(0.0, setting="b"))
    assert evidence(ruling).startswith("endpoint of the best setting: a: ")


def test_a_comparison_whose_cells_cancel_is_an_error(tmp_path):
    term = {"method": "grpo", "num_generations": 2}
    row = claim({"above": 0, "terms": [term, term | {"weight": -1}]})
    with pytest.raises(ValueError, match="claim it: comparison 1: its cells cancel"):
        ruled(tmp_path, row, cell("grpo", 2))
