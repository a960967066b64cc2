import pytest
from claim_rows import claim, claims_of, gain

from mcgrpo.analyse.claims import ClaimError, Comparison, Term, bounds, describe, read_claims


def test_words_of_a_comparison():
    terms = Term("grpo-plus1", 2, field="difference"), Term("mc-grpo", 2, weight=-0.5, field="difference")
    assert describe(Comparison(terms)) == "gain of GRPO+1 at G=2 − 0.5 × gain of MC-GRPO at G=2"
    assert describe(Comparison((Term("grpo", 2, weight=-1, benchmark="gsm8k"),))) == "−GRPO at G=2 on gsm8k"
    assert bounds(Comparison(terms, low=-1)) == "≥ −1"
    assert bounds(Comparison(terms, low=2.35, high=2.67)) == "≥ 2.35 and ≤ 2.67"
    assert bounds(Comparison(terms, high=0, high_open=True)) == "< 0"


def of(**term):
    return claim({"above": 0, "terms": [{"method": "mc-grpo", "num_generations": 2} | term]})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (of(method="mcgrpo"), "claim it: unknown method 'mcgrpo'"),
        (of(measure="gredy"), "claim it: unknown measure 'gredy' of in"),
        (of(measure="seconds"), "claim it: unknown measure 'seconds' of in"),
        (of(measure="greedy", role="train"), "claim it: unknown measure 'greedy' of train"),
        (of(measure="kl", role="train"), "claim it: unknown measure 'kl' of train"),
        (of(measure="released-avg@4"), "claim it: unknown measure 'released-avg@4' of in"),
        (
            of(measure="mean/oracle/zeros/k2/exact", role="flips"),
            "claim it: unknown measure 'mean/oracle/zeros/k2/exact'",
        ),
        (of(field="median"), r"claim it: comparisons.0.terms.0.field: 'median' is not one of"),
        (of(metod="grpo"), r"claim it: comparisons.0.terms.0: .*'metod' was unexpected"),
        (of(method="grpo", field="difference"), "claim it: field 'difference' of grpo, which has no baseline"),
        (of(field="change"), "claim it: field 'change' of the variant default"),
        (claim(gain()), "claim it: comparisons.0"),
        (claim(gain(above=0, at_least=0)), "claim it: comparisons.0"),
        (claim(gain(within=-1)), "claim it: comparisons.0.within: -1 is less than the minimum"),
        (claim(gain(above=0), unjudged="why"), "claim it"),
        (claim(gain(above=0), quantifier="most"), "claim it: quantifier: 'most' is not one of"),
        ({"id": "it", "says": "It."}, "claim it: 'where' is a required property"),
    ],
)
def test_mistakes_are_refused_naming_claim_and_culprit(tmp_path, row, message):
    with pytest.raises(ClaimError, match=message):
        claims_of(tmp_path, row)


def test_terms_of_different_places_and_twice_the_same_id_are_refused(tmp_path):
    mixed = claim(
        {
            "above": 0,
            "terms": [
                {"method": "grpo", "num_generations": 2, "role": "out"},
                {"method": "grpo", "num_generations": 2},
            ],
        }
    )
    with pytest.raises(
        ClaimError, match="claim it: terms of one comparison must share a role or benchmark, not in, out"
    ):
        claims_of(tmp_path, mixed)
    with pytest.raises(ClaimError, match="claim it: this id is given twice"):
        claims_of(tmp_path, claim(gain(above=0)), claim(gain(above=0)))


def test_bounds_that_are_averaged_are_on_the_same_sides(tmp_path):
    """The average of "above 0" and "below 0" would hold of anything."""
    above, below = gain(2, above=0), gain(4, below=0)
    with pytest.raises(ClaimError, match="claim it: comparisons that are averaged must be bounded on the same sides"):
        claims_of(tmp_path, claim(above, below))
    with pytest.raises(ClaimError, match="same sides"):
        claims_of(tmp_path, claim(above, below, primary=1, quantifier="some"))
    assert claims_of(tmp_path, claim(above, below, primary=1))[0].primary == 1


def test_a_key_given_twice_is_refused_with_its_line(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text("claims:\n  - id: it\n    id: that\n")
    with pytest.raises(ClaimError, match=r"claims.yaml, line 3: the key 'id' is there already"):
        read_claims(path)
