"""The best of several variants, chosen on one half of the seeds and scored on the other; questions about it."""

from dataclasses import replace

import pytest
from answers import plan_of, planned_by
from claim_rows import cell, claim, scores_of

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.claims import ClaimError, check_questions, questions
from mcgrpo.analyse.comparisons import comparisons
from mcgrpo.analyse.selections import choices, planned_seeds, with_selected
from mcgrpo.analyse.summarise import summarise
from mcgrpo.report.tables import questions as table

LOW, HIGH = "rate-low", "rate-high"
# Seeds 0, 2 and 1, 3 are the halves. Of GRPO, the even seeds find `low` best and the odd ones `high`.
RATES = [
    cell("grpo", 2, [0.6, 0.2, 0.6, 0.2], variant=LOW),
    cell("grpo", 2, [0.5, 0.1, 0.5, 0.9], variant=HIGH),
    cell("mc-grpo", 2, [0.3, 0.3, 0.3, 0.3], variant=LOW),
    cell("mc-grpo", 2, [0.9, 0.62, 0.91, 0.6], variant=HIGH),
]
GRPO = CellKey("toy", "", "train", "train", "", 2, "grpo")
MORE = [cell("grpo", 2, [0.1, 0.2, 0.3, 0.4], variant=each, measure="avg@4") for each in (LOW, HIGH)]
ASKED = {key: value for key, value in claim({"above": 0, "terms": [
    {"method": "mc-grpo", "num_generations": 2, "variant": "best"},
    {"weight": -1, "method": "grpo", "num_generations": 2, "variant": "best"}]}).items() if key != "where"}  # fmt: skip


def a_plan(scores, **more):
    plan = replace(planned_by(plan_of(["toy"]), scores), benchmarks={"toy": {"sums": "in"}})
    return replace(plan, selections={"best": [LOW, HIGH]}, **more)


def test_each_half_of_the_seeds_takes_the_variant_that_the_other_half_finds_best():
    scores = scores_of(*RATES, *MORE)
    plan = a_plan(scores)
    assert choices(plan, scores, GRPO, [LOW, HIGH]) == {0: HIGH, 2: HIGH, 1: LOW, 3: LOW}
    found = with_selected(plan, scores)
    values = {key[-1]: [each.value for each in seeds.values()] for key, seeds in found.items()
              if (key.variant, key.measure) == ("best", "greedy")}  # fmt: skip
    # Chosen and measured on all seeds, GRPO's best would be 0.5
    assert values == {"grpo": [0.5, 0.2, 0.5, 0.2], "mc-grpo": [0.9, 0.62, 0.91, 0.6]}
    sampled = next(seeds for key, seeds in found.items() if (key.variant, key.measure) == ("best", "avg@4"))
    assert list(sampled) == [0, 1, 2, 3]  # by every measure
    assert {key: seeds for key, seeds in found.items() if key.variant != "best"} == scores


def test_of_equal_variants_the_first_is_chosen_and_one_seed_chooses_nothing():
    equal = scores_of(*(cell("grpo", 2, [0.5, 0.5], variant=each) for each in (LOW, HIGH)))
    assert choices(a_plan(equal), equal, GRPO, [LOW, HIGH]) == {0: LOW, 1: LOW}
    one = scores_of(*(cell("grpo", 2, [0.5], variant=each) for each in (LOW, HIGH)))
    assert not choices(a_plan(one), one, GRPO, [LOW, HIGH])
    assert with_selected(a_plan(one), one) == one


def test_a_selection_is_planned_where_all_its_variants_are():
    scores = scores_of(*RATES[:3])
    assert {key.method for key in planned_seeds(a_plan(scores)) if key.variant == "best"} == {"grpo"}


def test_a_question_about_the_best_rates_is_judged_in_a_family_of_its_own():
    scores = scores_of(*RATES)
    plan = a_plan(scores, questions=[ASKED])
    rows = compared(plan, scores)
    by_family = {(row.family, row.comparison): row for row in rows}
    endpoint = by_family["question it", 0]
    assert endpoint.value == pytest.approx(40.75)  # points: 0.4, 0.42, 0.41, 0.4
    assert endpoint.verdict == "holds"
    summary = {(row.method, row.variant): row.mean for row in summarise(plan, with_selected(plan, scores))
               if row.measure == "greedy"}  # fmt: skip
    assert summary["grpo", "best"] == pytest.approx(0.35)
    printed = table.table(plan, rows).frame
    assert printed["Comparison"].tolist() == ["G=2"]
    assert str(printed["Value"][0]).startswith("+40.8 [") and str(printed["Value"][0]).endswith("holds")
    assert table.table(replace(plan, questions=[]), rows) is None


def test_a_setting_that_does_not_plan_a_comparison_is_not_missing_there():
    """One cell of two is planned in `other`; in `toy` both are, and one has no score."""
    scores = scores_of(*RATES, cell("grpo", 2, [0.1, 0.2], variant=LOW, setting="other"))
    plan = a_plan(scores, questions=[ASKED | {"comparisons": [{"above": 0, "terms": [
        {"method": method, "num_generations": 2, "variant": LOW, "weight": weight}
        for method, weight in (("mc-grpo", 1), ("grpo", -1))]}]}])  # fmt: skip
    plan = replace(plan, benchmarks={"toy": {"sums": "in"}, "other": {"sums": "in"}})
    there = {key: seeds for key, seeds in scores.items() if (key.setting, key.method) != ("toy", "mc-grpo")}
    for known, value in ((scores, "-1"), (there, "missing")):
        printed = table.table(plan, compared(plan, known)).frame
        assert printed["Setting"].tolist() == ["toy"] and str(printed["Value"][0]).replace("−", "-").startswith(value)


def compared(plan, scores):
    return comparisons(plan, questions(plan.questions), with_selected(plan, scores))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "it", "says": "It holds."}, "claim it: "),
        (ASKED | {"comparisons": [{"above": 0, "terms": [{"method": "grppo", "num_generations": 2}]}]}, "'grppo'"),
        (ASKED, "claim it: no 'best' under variants or selections"),
        (ASKED | {"settings": ["toy", "tyo"]}, "claim it: no 'tyo' under settings"),
        (
            ASKED
            | {"comparisons": [{"above": 0, "terms": [{"method": "grpo", "num_generations": 2, "benchmark": "suns"}]}]},
            "claim it: no 'suns' under datasets",
        ),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_before_anything_runs(row, said):
    with pytest.raises(ClaimError, match=said):
        check_questions({"questions": [row], "settings": {"toy"}, "datasets": {"sums"}, "variants": {LOW, HIGH}})
