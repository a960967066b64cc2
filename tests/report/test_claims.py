"""Verdicts on claims: a table of claims, cells and verdicts; Holm's correction; what is said of each; the files."""

import csv

import numpy as np
import pytest
from claim_rows import cell, claim, claims_of, gain, pair, ruled, scores_of
from golden import golden
from hypothesis import given
from hypothesis import strategies as st

from mcgrpo import shipped
from mcgrpo.analyse.claims import ClaimError, Comparison, Term, read_claims
from mcgrpo.analyse.contrasts import contrasts, own_verdicts, p_values
from mcgrpo.analyse.records import GPUS, Contrast
from mcgrpo.analyse.stats import Estimate
from mcgrpo.analyse.verdicts import holm, verdicts
from mcgrpo.report.claims.__main__ import main
from mcgrpo.report.claims.judge import judge, rulings
from mcgrpo.report.claims.tables import comparisons, decisive, listing
from mcgrpo.sums import write_table

OURS = read_claims(shipped.CLAIMS)
PAIR, SURE, UNSURE, BAD = pair(0.02, 0.005), pair(0.04, setting="a"), pair(0.0, setting="b"), pair(-0.03, setting="c")
ABOVE, TWICE = claim(gain(above=0)), claim(gain(2, above=0), gain(4, above=0))
SOME = ABOVE | {"quantifier": "some"}
EVEN = [pair(0.0, 0.01, setting=f"s{n}") for n in range(19)]
TERM = {"method": "grpo", "num_generations": 2}
OF_REWARD = {"role": "train", "measure": "reward_first"}
NOTHING = cell("grpo", 2, 0.0, benchmark="train", **OF_REWARD)


@pytest.mark.parametrize(
    ("row", "cells", "verdict"),
    [
        # A gain is judged by its own paired interval.
        (ABOVE, [pair(0.02, 0.01)], "holds"),
        (ABOVE, [pair(0.02, 0.03)], "inconclusive"),
        (ABOVE, [pair(-0.02, 0.01)], "fails"),
        (ABOVE, [pair(0.0, 0.0)], "fails"),
        # Bounds, of a gain of 2 [1.5, 2.5] points.
        (claim(gain(at_least=1, at_most=3)), [PAIR], "holds"),
        (claim(gain(at_least=2.4, at_most=4)), [PAIR], "inconclusive"),
        (claim(gain(at_least=3.5, at_most=9)), [PAIR], "fails"),
        (claim(gain(within=3)), [PAIR], "holds"),
        (claim(gain(within=1)), [PAIR], "fails"),
        (claim(gain(below=2.4)), [PAIR], "inconclusive"),
        (claim(gain(below=1.4)), [PAIR], "fails"),
        # The claim of a sign is equivalent within the margin, a point; others never are.
        *((claim(gain(**bound)), [pair(0.002, 0.009)], "equivalent") for bound in ({"above": 0}, {"at_most": 0})),
        (ABOVE, [pair(0.004, 0.009)], "inconclusive"),  # the 90% interval is [-0.3, 1.1]
        (claim(gain(within=0.1)), [pair(0.0, 0.009)], "inconclusive"),
        (claim(gain(above=0.1)), [pair(0.0, 0.009)], "inconclusive"),
        # The endpoint decides, and one comparison can contradict it.
        (ABOVE, [SURE, UNSURE], "holds"),
        (ABOVE, [SURE, pair(0.08, setting="d"), UNSURE, BAD], "fails"),
        # One that would fail alone is no contradiction among twenty.
        (claim(gain(at_least=0)), [pair(-0.02, 0.019, setting="bad")], "fails"),
        (claim(gain(at_least=0)), [pair(-0.02, 0.019, setting="bad"), *EVEN], "equivalent"),
        (claim(gain(at_least=0)), [pair(-0.08, 0.019, setting="bad"), *EVEN], "fails"),
        # Where some setting is enough: corrected for their number.
        (SOME, [SURE, UNSURE, BAD], "holds"),
        (SOME, [UNSURE, BAD], "inconclusive"),
        (SOME, [pair(0.0, 0.005, setting="a"), BAD], "equivalent"),
        (SOME, [BAD], "fails"),
        (claim(gain(at_least=3), quantifier="some"), [pair(0.05, 0.019, setting="x")], "holds"),
        (claim(gain(at_least=3), quantifier="some"), [pair(0.05, 0.019, setting="x"), *EVEN], "inconclusive"),
        # With bounds on both sides every comparison must hold: losses and gains do not cancel.
        (claim(gain(within=1)), [pair(0.009, 0.004, setting="a"), pair(-0.009, 0.004, setting="b")], "inconclusive"),
        (claim(gain(within=1)), [pair(0.001, 0.004, setting="a"), pair(-0.001, 0.004, setting="b")], "holds"),
        # Not measured until each comparison is, and failed before.
        (TWICE, [pair(0.03)], "not measured"),
        (TWICE, [pair(-0.03)], "fails"),
        (ABOVE, [], "not measured"),
        (ABOVE | {"settings": ["a"]}, [pair(0.03, setting="b")], "not measured"),
        # One seed has an interval over problems and no test; without an interval nothing is claimed.
        (claim({"above": 0, "terms": [TERM]}), [cell("grpo", 2, [[0.0, 1.0] * 20])], "inconclusive"),
        (claim({"above": 0, "terms": [TERM]}), [cell("grpo", 2, [0.5])], "inconclusive"),
        # What all seeds agree on is certain where there are no problems.
        (claim({"at_most": 0, "terms": [TERM | OF_REWARD]}), [NOTHING], "holds"),
        (claim({"below": 0, "terms": [TERM | OF_REWARD]}), [NOTHING], "fails"),
    ],
)  # fmt: skip
def test_the_verdict_on_a_claim(tmp_path, row, cells, verdict):
    assert ruled(tmp_path, row, *cells).verdict == verdict


def test_a_missing_setting_may_be_sufficient_where_some_is(tmp_path):
    planned = pair(0.03, setting="b")
    assert ruled(tmp_path, SOME, pair(-0.03, setting="a"), planned=planned).verdict == "not measured"
    assert ruled(tmp_path, SOME, pair(0.03, setting="a"), planned=planned).verdict == "holds"


def test_the_margin_is_the_studys_in_rewards_times_that_of_a_right_answer(tmp_path):
    terms = [{"method": "mc-grpo", "num_generations": 2, "field": "difference", **OF_REWARD}]
    of_rewards = claim({"above": 0, "terms": terms})
    scored = pair(0.002, 0.009), pair(0.0, 0.009, benchmark="train", **OF_REWARD)
    for row, cells, margins in zip((ABOVE, of_rewards), scored, ((0.01, 0.005), (0.005, 0.0025)), strict=True):
        scores, claims = scores_of(cells), claims_of(tmp_path, row)
        planned = {key.without_measure for key in scores}
        found = [judge(claims, contrasts(claims, scores, planned, margin=margin), "ours")[0] for margin in margins]
        assert [ruling.verdict for ruling in found] == ["equivalent", "inconclusive"]


def test_holms_correction_by_hand():
    # 0.01 x 3; 0.02 x 2; 0.03 x 1 is raised to the one before.
    assert holm([0.02, 0.03, 0.01]) == pytest.approx([0.04, 0.04, 0.03])
    assert holm([0.9, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("p", "words"),
    [
        # 0.006 x 2 = 0.012; 0.0064 x 2 = 0.0128; the endpoint and what is measured alone at 0.025.
        ([0.006, 0.5], ["holds", "inconclusive"]),
        ([0.0064, 0.5], ["inconclusive", "inconclusive"]),
        ([0.024], ["holds"]),
        ([0.026], ["inconclusive"]),
    ],
)
def test_single_comparisons_beside_their_average_share_half_of_its_level(p, words):
    rows = [Contrast("claim it", comparison=1, value=1.0, p_holds=each, p_fails=1 - each) for each in p]
    endpoint = Contrast("claim it", comparison=0, value=1.0, p_holds=0.024, p_fails=0.976)
    assert own_verdicts([*rows, endpoint]) == [*words, "holds"]


def test_what_is_measured_alone_is_not_corrected(tmp_path):
    ruling = ruled(tmp_path, ABOVE, pair(0.02, 0.018, setting="a"), planned=pair(0.02, setting="b"))
    assert [finding.verdict for finding in ruling.findings] == ["holds", "not measured"]


def test_what_is_missing_or_fails_is_named(tmp_path):
    terms = [{"method": "grpo", "num_generations": 8}, {"weight": -1, "method": "grpo", "num_generations": 2}]
    planned = [cell("grpo", g, setting=name) for name, g in (("b", 8), ("c", 2), ("c", 8))]
    high, low = [0.91, 0.9, 0.9, 0.9, 0.9], 0.1
    cells = [cell("grpo", 8, high, setting="a"), cell("grpo", 2, low, setting="a"), cell("grpo", 2, low, setting="b")]
    ruling = ruled(tmp_path, claim({"above": 0, "terms": terms}), *cells, planned=planned)
    assert (ruling.verdict, comparisons(ruling)) == ("holds", "1 holds; not measured in b/sums, c/sums.")
    ruling = ruled(tmp_path, TWICE, pair(0.03))
    assert decisive(ruling) == "" and "not measured in any setting: gain of MC-GRPO at G=4" in comparisons(ruling)
    ruling = ruled(tmp_path, ABOVE, SURE, BAD)
    assert decisive(ruling) == "−3.0 [−4.0, −2.0] points (greedy), claimed > 0"  # not the endpoint, which is above 0
    worst = "worst: c/sums: gain of MC-GRPO at G=2 is −3.0 [−4.0, −2.0] points (greedy), claimed > 0, 5 seeds"
    assert worst in comparisons(ruling)
    one = claim({"above": 0, "terms": [TERM]})
    without = {"one seed: interval over problems only": [[0.0, 1.0] * 20], "without an interval": [0.5]}
    assert all(text in comparisons(ruled(tmp_path, one, cell("grpo", 2, each))) for text, each in without.items())


def test_the_bound_that_is_printed_is_the_one_that_is_tested(tmp_path):
    """Of two comparisons one is measured in two settings, the other in one: their bounds weigh as their values do."""
    row = claim(gain(2, at_least=0), gain(4, at_least=3))
    cells = pair(0.02, budget=2, setting="a"), pair(0.02, budget=2, setting="b"), pair(0.05, budget=4, setting="a")
    (endpoint,) = ruled(tmp_path, row, *cells).endpoints
    assert (endpoint.value, endpoint.threshold) == (pytest.approx(3.0), "≥ 1")
    assert endpoint.margin == pytest.approx(2.0)


@given(
    value=st.floats(-50, 50), half=st.floats(0.01, 20), low=st.floats(-50, 50), width=st.floats(0, 40),
    wider=st.floats(0, 30),
)  # fmt: skip
def test_a_looser_bound_never_turns_holds_or_a_tighter_one_fails(value, half, low, width, wider):
    def at(a, b):
        comparison = Comparison((Term("grpo", 2),), low=a, high=b)
        p = p_values(comparison, Estimate(value / 100, 3, half / 430, 2.0))
        return verdicts([Contrast("claim it", value=value, p_holds=p[0], p_fails=p[1])])[0]

    tight, loose = at(low, low + width), at(low - wider, low + width + wider)
    order = ["fails", "inconclusive", "holds"]
    assert order.index(tight) <= order.index(loose)


def times(budget=4, gpus=1, setting="toy"):
    """A method that takes 1.2 times as long as its baseline, on GPUs of its own."""
    base = np.array([100.0, 110.0, 90.0, 105.0, 95.0])
    of = {"benchmark": "train", "role": "train", "setting": setting}
    found = [cell("mc-grpo", budget, base * np.array([1.18, 1.2, 1.22, 1.19, 1.21]), measure="seconds_per_step", **of)]
    found.append(cell("grpo", budget, base, measure="seconds_per_step", **of))
    return [*found, *(cell(method, budget, gpus, measure=GPUS, **of) for method in ("mc-grpo", "grpo"))]


def ratio(bound, budget=4):
    of = {"num_generations": budget, "role": "train", "measure": "seconds_per_step"}
    return bound | {"ratio": [{"method": "mc-grpo"} | of, {"method": "grpo"} | of]}


def test_times_are_judged_of_trainings_on_gpus_alone(tmp_path):
    row = claim(ratio({"at_most": 1.5}))
    ruling = ruled(tmp_path, row, times())
    assert (ruling.verdict, decisive(ruling)) == ("holds", "1.2 [1.18, 1.22] times, claimed ≤ 1.5")
    for gpus in (0, [2, 2, 2, 2, 0]):
        ruling = ruled(tmp_path, row, times(gpus=gpus))
        assert (ruling.verdict, decisive(ruling)) == ("not judged", "") and "on GPUs." in comparisons(ruling)
    other = times(gpus=0, setting="another")  # does not hide those of the first
    assert ruled(tmp_path, claim(ratio({"above": 1.5})), times(), other).verdict == "fails"
    twice = claim(ratio({"at_most": 2}, 2), ratio({"at_most": 2}))
    two = ruled(tmp_path, twice, times(2, gpus=0), times(4, gpus=0)[:1])
    assert [two.verdict, *(row.verdict for row in two.findings)] == ["not judged", "not judged", "not measured"]
    of = {"benchmark": "train", "role": "train", "measure": "seconds_per_step"}
    with pytest.raises(ValueError, match="a ratio needs positive numbers, not 0 of seed 1"):
        ruled(tmp_path, row, cell("mc-grpo", 4, [1.0, 0.0], **of), cell("grpo", 4, [1.0, 1.0], **of))


def of(**term):
    return claim({"above": 0, "terms": [{"method": "mc-grpo", "num_generations": 2} | term]})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([of(method="mcgrpo")], "claim it: unknown method 'mcgrpo'"),
        ([of(measure="seconds")], "claim it: unknown measure 'seconds' of in"),
        ([of(measure="greedy", role="train")], "claim it: unknown measure 'greedy' of train"),
        ([of(measure="mean/oracle/zeros/k2", role="flips")], "claim it: unknown measure 'mean/oracle/zeros"),
        ([of(field="median")], r"claim it: comparisons.0.terms.0.field: 'median' is not one of"),
        ([of(metod="grpo")], r"claim it: comparisons.0.terms.0: .*'metod' was unexpected"),
        ([of(method="grpo", field="difference")], "claim it: field 'difference' of grpo, which has no baseline"),
        ([of(field="change")], "claim it: field 'change' of the variant default"),
        ([claim(gain(above=0, at_least=0))], "claim it: comparisons.0"),
        ([claim(gain(above=0), ratio({"above": 1.5}))], "must share a unit, not points, times"),
        ([claim({"above": 1, "ratio": [{"method": "mc-grpo", "num_generations": 2}] * 2})], "of two training times"),
        ([claim(gain(above=0), unjudged="why")], "claim it"),
        ([{"id": "it", "says": "It."}], "claim it: 'where' is a required property"),
        ([claim({"above": 0, "terms": [TERM | {"role": "out"}, TERM]})], "must share a role or benchmark, not in, out"),
        ([claim(gain(2, above=0), gain(4, below=0))], "that are averaged must be bounded on the same sides"),
        ([TWICE | {"quantifier": "some"}], "'quantifier: some' is of one comparison with one bound"),
        ([claim(gain(within=1), quantifier="some")], "'quantifier: some' is of one comparison with one bound"),
        ([ABOVE, ABOVE], "claim it: this id is given twice"),
    ],
)
def test_mistakes_are_refused_naming_claim_and_culprit(tmp_path, rows, message):
    with pytest.raises(ClaimError, match=message):
        claims_of(tmp_path, *rows)


def test_contrasts_of_another_file_of_claims_and_cells_that_cancel_are_refused(tmp_path):
    scores = scores_of(pair(0.03))
    rows = contrasts(claims_of(tmp_path, ABOVE), scores, {key.without_measure for key in scores})
    with pytest.raises(ValueError, match="claim it: it has 2 comparisons, but 1 have been evaluated"):
        judge(claims_of(tmp_path, TWICE), rows, "ours")
    with pytest.raises(ValueError, match="claim it: comparison 1: its cells cancel"):
        ruled(tmp_path, claim({"above": 0, "terms": [TERM, TERM | {"weight": -1}]}), cell("grpo", 2))


def test_the_projects_claims_in_every_format(tmp_path):
    """By the paper's numbers, and by a study of one toy setting."""
    scores = scores_of(*(pair(0.05, 0.01, budget=g, base=0.5 + g / 100) for g in (2, 4, 8)))
    rows = contrasts(OURS, scores, {key.without_measure for key in scores})
    write_table(tmp_path / "comparisons.csv", Contrast, rows)
    main(["--results", str(tmp_path), "--output", str(tmp_path), "--title", "Toys & 100% of_them"])
    for name in ("claims.md", "claims.tex"):
        golden(name, (tmp_path / name).read_text())
    assert "By the paper's own numbers: 14 hold, 13 fail, 12 not measured, 4 not judged." in listing(rulings())
    with (tmp_path / "claims.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["claim"] == "grpo-gains"]
    ours = [(row["kind"], row["setting"], row["verdict"]) for row in rows if row["source"] == "ours"]
    assert ours == [("single", "toy", "holds")] * 2 + [("endpoint", "", "holds")]
    assert len(rows) == 10 + 1 + 2 + 1 and {row["low"] for row in rows if row["source"] == "published"} == {""}
    with pytest.raises(SystemExit, match=r"error: .*comparisons.csv: no such file"):
        main(["--results", str(tmp_path / "none"), "--output", str(tmp_path)])
