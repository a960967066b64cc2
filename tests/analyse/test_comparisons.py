"""Every pair of cells once: its family, and one verdict, which the claims that are about it take over."""

from dataclasses import replace

import numpy as np
import pytest
from answers import comparisons_of, plan_of
from claim_rows import cell, claim, claims_of, gain, scores_of

from mcgrpo.analyse.contrasts import estimate_sum
from mcgrpo.analyse.pairs import AVERAGE

SHARED = np.array([0.02, -0.01, 0.0, 0.01, -0.02]) + 0.5
SPREAD = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 1000
"""Standard error of a mean: 0.0007."""


def cells(method, over=0.0, **of):
    """Both decodings of a cell that is so much above 0.5, with noise of its own unless it is GRPO's."""
    own = 0 * SPREAD if method == "grpo" and of.get("variant", "default") == "default" else SPREAD
    return [cell(method, values=SHARED + over + own, measure=measure, **of) for measure in ("greedy", "avg@4")]


def compared(*parts, claims=(), settings=("toy",), sizes=(2,)):
    plan = plan_of(list(settings), sizes, measures=("avg@4", "greedy"))
    return comparisons_of(plan, scores_of(*parts), claims=claims)


def of(rows, **wanted):
    (row,) = [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]
    return row


def test_a_pair_has_the_first_family_that_shows_it():
    trained = [cells(method) for method in ("grpo", "mc-grpo", "grpo-plus1")]
    variants = ("rival-sign", "flip-0.05", "composite", "mad-zero-std")
    far = [cells(method, role="out", benchmark="far") for method in ("grpo", "mc-grpo")]
    rows = compared(*trained, *(cells("grpo", variant=name) for name in variants), *far)
    found = {(row.method, row.variant, row.role, row.decoding, row.kind): row.family for row in rows}
    of_default = [(method, "default", "in", "sampled", kind) for method, kind in (
        ("mc-grpo", "difference"), ("mc-grpo", "control"), ("grpo-plus1", "difference"),
    )]  # fmt: skip
    assert [found[key] for key in of_default] == ["primary, grpo", "primary, grpo-plus1", "control"]
    greedy = [(*key[:3], "greedy", key[4]) for key in of_default]
    assert [found[key] for key in greedy] == ["main", "control", "control"]
    assert found["mc-grpo", "default", "out", "sampled", "difference"] == "ood"
    changes = [found["grpo", name, "in", "greedy", "change"] for name in variants]
    assert changes == ["rivals", "injected-flips", "composite", "variants"]
    assert len(found) == len(rows)


def test_a_verdict_is_corrected_within_its_family_alone():
    """A gain of 2.9 standard errors with four degrees of freedom, p = 0.044, beside others or not."""
    above = {"over": 2.9 * 0.000707}
    one = compared(cells("grpo"), cells("mc-grpo", **above))
    assert of(one, measure="avg@4").verdict == "better"
    assert of(one, measure="avg@4").p_holds == pytest.approx(0.022, abs=1e-3)
    others = [part for name in "abc" for part in (cells("grpo", setting=name), cells("mc-grpo", setting=name))]
    many = compared(cells("grpo"), cells("mc-grpo", **above), *others, settings=["toy", *"abc"])
    assert of(many, measure="avg@4", setting="toy").verdict == "equivalent"
    assert of(many, measure="avg@4", setting="toy").p_holds == of(one, measure="avg@4").p_holds
    elsewhere = compared(cells("grpo"), cells("mc-grpo", **above), *others, settings=["toy"])
    assert of(elsewhere, measure="avg@4", setting="toy").verdict == "better"


def test_tests_of_a_pair_have_no_more_degrees_of_freedom_than_its_seeds_less_one():
    """Its interval may have more, where most of its noise is that of problems."""
    generator = np.random.default_rng(0)
    cells = [cell(method, values=generator.random((3, 50)), measure="avg@4") for method in ("grpo", "mc-grpo")]
    row = of(compared(*cells), measure="avg@4")
    (mine, _), (base, _) = cells[::-1]
    result, _, _ = estimate_sum({mine: 1.0, base: -1.0}, scores_of(*cells))
    assert (row.low, row.high) == result.limits() and result.degrees_of_freedom > 2
    tested = replace(result, degrees_of_freedom=2)
    assert (row.p_equivalent, row.detectable) == (tested.p_within(0.01), tested.detectable)
    assert (row.p_holds, row.p_fails) == (tested.p_value(0, "greater"), tested.p_value(0, "less"))


def test_primary_comparisons_have_an_average_in_each_decoding_without_a_verdict():
    gains = {2: 0.03, 4: -0.01}
    parts = [cells("grpo", budget=size) + cells("mc-grpo", over, budget=size) for size, over in gains.items()]
    rows = compared(*parts, sizes=(2, 4))
    found = [row for row in rows if row.family == AVERAGE]
    told = [(row.other_method, row.decoding, row.comparisons, row.verdict) for row in found]
    assert told == [("grpo", decoding, 2, None) for decoding in ("sampled", "greedy")]
    for row in found:
        assert row.value == pytest.approx(0.01) and row.low < 0.01 < row.high
    assert [row for row in compared(*parts, sizes=(2,)) if row.family == AVERAGE] == []  # of one
    assert [
        row for row in compared(*parts[:1], parts[1][:2], sizes=(2, 4)) if row.family == AVERAGE
    ] == []  # or missing


def test_what_is_not_there_has_no_verdict_and_one_seed_decides_nothing():
    alone = [(key, {0: seeds[0]}) for key, seeds in cells("mc-grpo", 0.2)]
    rows = compared(cells("grpo"), alone)
    assert {(row.verdict, row.detectable, row.seeds) for row in rows} == {("inconclusive", None, 1)}
    rows = compared(cells("grpo"), cells("mc-grpo"), cells("grpo", budget=4), cells("mc-grpo", budget=4)[:1])
    assert of(rows, num_generations=4, measure="avg@4").verdict is None
    assert of(rows, num_generations=4, measure="avg@4").value is None


def test_a_claim_about_the_sign_of_a_pair_has_its_verdict(tmp_path):
    """The claim alone would hold: its one comparison is not corrected. Among the pairs of its table it does not."""
    above = {"over": 2.9 * 0.000707}
    others = [part for size in (4, 8, 16) for part in (cells("grpo", budget=size), cells("mc-grpo", budget=size))]
    scores = (cells("grpo"), cells("mc-grpo", **above), *others)
    terms = [("grpo", 1), ("mc-grpo", -1)]
    down = {"terms": [{"method": method, "num_generations": 2, "weight": sign} for method, sign in terms]}
    claims = claims_of(tmp_path, claim(gain(above=0)), claim({**down, "below": 0}) | {"id": "down"})
    rows = compared(*scores, claims=claims)
    pair = of(rows, kind="difference", measure="greedy", num_generations=2)
    assert pair.verdict == "equivalent" and pair.family == "main"
    assert {row.verdict for row in rows if row.kind is None} == {"equivalent"}
    (bound,) = claims_of(tmp_path, claim(gain(at_most=1)))
    rows = compared(*scores, claims=[bound])
    assert {row.verdict for row in rows if row.kind is None} == {"holds"}  # another question
    sure = compared(cells("grpo"), cells("mc-grpo", 0.05), claims=claims)
    assert [row.verdict for row in sure if row.kind is None] == 4 * ["holds"]


def test_a_pair_that_only_claims_compare_has_the_verdict_of_the_first(tmp_path):
    """GRPO at G=8 and at G=2: alone in its claim, and turned round in one of three, which are corrected."""

    def over(first, second, **bound):
        sides = ((first, 1), (second, -1))
        return {"terms": [{"method": "grpo", "num_generations": size, "weight": sign} for size, sign in sides]} | bound

    noisy = SHARED + 2.9 * 0.000707 + SPREAD
    parts = cell("grpo", 2, SHARED), cell("grpo", 8, noisy), cell("grpo", 4, SHARED + SPREAD[::-1])
    several = claim(over(2, 8, below=0), over(2, 4, below=0), over(4, 8, below=0)) | {"id": "several"}
    rows = compared(*parts, claims=claims_of(tmp_path, claim(over(8, 2, above=0)), several))
    words = {(row.family, row.comparison): row.verdict for row in rows if row.kind is None}
    assert words["claim it", 1] == words["claim it", 0] == words["claim several", 1] == "holds"
    alone = compared(*parts, claims=claims_of(tmp_path, several))
    assert next(row.verdict for row in alone if row.comparison == 1) != "holds"
