"""The answer: of two parts, what the median gains over GRPO+1 decides; wrong by chance in at most 5% of studies."""

import itertools

import numpy as np
import pytest
from answers import answer_of, plan_of
from cells import cell, frame
from claim_rows import cell as scored
from claim_rows import scores_of, simulated
from scipy.stats import binomtest

from mcgrpo.analyse.cells import CellKey
from mcgrpo.report.answer import answer_table, lost, markdown, overall

SPREAD = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 1000


def study(over_plus1, over_grpo, setting="toy", size=2, **other):
    """MC-GRPO, GRPO+1 and GRPO with these mean gains, each sure to a few tenths of a point."""
    shared = np.array([0.02, -0.01, 0.0, 0.01, -0.02]) + 0.5
    of = {"setting": setting, "budget": size, **other}
    return [
        scored("mc-grpo", values=shared + SPREAD, **of),
        scored("grpo-plus1", values=shared - over_plus1, **of),
        scored("grpo", values=shared - over_grpo, **of),
    ]


def test_a_gain_over_the_mean_that_the_control_has_too_is_not_the_medians():
    """As in the first mini study, whose answer was "Yes": +0.9 and +0.9."""
    found = answer_of(plan_of(["toy"]), scores_of(study(0.0, 0.05)))
    assert (found.word(), found.word("grpo")) == ("No, it is equivalent", "Yes")
    start = "**Does the median help? No, it is equivalent.** MC-GRPO against GRPO+1, which draws as many"
    assert markdown(found, "Nothing.").startswith(start)


def test_each_part_has_its_paired_number_and_interval_for_every_setting_and_g():
    cells = study(0.02, 0.05), study(0.0, 0.03, size=4), study(-0.02, 0.01, setting="other")
    plan = plan_of(["other", "toy"], sizes=(2, 4))
    found = answer_of(plan, scores_of(*cells), [key._replace(num_generations=4) for key, _ in cells[2]])
    text = markdown(found, "Nothing.")
    assert "- toy on sums, G=2: +2.0 points [+1.8, +2.2], better (5 seeds)" in text
    assert "- other on sums, G=2: −2.0 points [−2.2, −1.8], worse (5 seeds)" in text
    assert "- other on sums, G=4: missing" in text
    assert found.word() == "So far: it depends"
    rows = [list(map(str, row)) for row in answer_table(found).sparse.to_numpy()]
    assert rows[0] == ["other", "sums", "2", "−2.0 [−2.2, −1.8] worse", "+1.0 [+0.8, +1.2] better", "5"]
    assert [row[2] for row in rows] == ["2", "4", "2", "4"] and rows[1][3] == "missing"


def test_greedy_stands_beside_sampled_in_the_same_breath_with_its_own_verdict():
    scores = scores_of(study(0.02, 0.05, measure="avg@4"), study(-0.05, -0.05))
    found = answer_of(plan_of(["toy"], measures=("avg@4", "greedy")), scores)
    assert found.word() == "Yes"
    said = markdown(found, "")
    both = (
        "sampled accuracy (avg@4), the primary endpoint. In greedy accuracy, as the paper's released code decodes: "
        "no, it hurts"
    )
    assert both in said
    assert "+2.0 points [+1.8, +2.2], better (5 seeds; greedy: −5.0 [−5.2, −4.8], worse)" in said
    assert [str(entry) for entry in answer_table(found).frame.iloc[0, 5:]] == ["−5.0 [−5.2, −4.8] worse"] * 2 + ["5"]


def test_each_decoding_has_the_average_of_its_comparisons():
    sampled = [study(0.02, 0.05, measure="avg@4"), study(0.04, 0.05, measure="avg@4", size=4)]
    greedy = [study(-0.01, 0.0), study(0.0, 0.0, size=4)]
    plan = plan_of(["toy"], sizes=(2, 4), measures=("avg@4", "greedy"))
    said = answer_of(plan, scores_of(*sampled, *greedy)).compares("grpo-plus1")
    assert ", the primary endpoint, on average +3.0 points [+2.8, +3.2]. In greedy" in said
    assert said.endswith("(exploratory), on average −0.5 points [−0.7, −0.3].")


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["better", "better"], "Yes"),
        (["better", "inconclusive"], "In part"),
        (["better", "worse"], "It depends"),
        (["worse"], "No, it hurts"),
        (["worse", "equivalent"], "In part it hurts"),
        (["equivalent", "equivalent"], "No, it is equivalent"),
        (["equivalent", "inconclusive"], "Inconclusive"),
        (["better", "not measured"], "So far: yes"),
        (["not measured"], "Not known yet"),
        ([], "Not asked"),
    ],
)
def test_one_word_for_all_comparisons_of_a_part(words, word):
    assert overall(words) == word


def test_what_is_not_compared_is_not_asked_and_one_seed_shows_nothing():
    found = answer_of(plan_of(["toy"], baselines=("grpo",)), scores_of(study(0.0, 0.05)))
    assert (found.word(), found.word("grpo")) == ("Not asked", "Yes")
    assert "MC-GRPO is not trained beside GRPO+1, which draws as many rollouts" in markdown(found, "")
    assert answer_table(answer_of(plan_of([], baselines=()), {})) is None
    rows = [(key, {0: seeds[0]}) for key, seeds in study(0.05, 0.05)]
    assert answer_of(plan_of(["toy"]), scores_of(rows)).word() == "Inconclusive"


def test_more_comparisons_need_stronger_evidence():
    """A difference with p = 0.03, alone and among five: Holm's correction."""
    names = ["a", "b", "c", "d", "e"]
    for settings, word in ((names[:1], "better"), (names, "equivalent")):
        rest = [study(0.0, 0.0, setting=name) for name in settings[1:]]
        found = answer_of(plan_of(settings), scores_of(study(0.0023, 0.0, setting="a"), *rest))
        assert found.part("grpo-plus1").word.iloc[0] == word


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "noise"), [((2, 4, 8), {}), ((2,), {}), ((2, 4, 8), {"seeds": 3, "parts": (16, 1, 1)})]
)
def test_where_nothing_differs_the_word_is_better_or_worse_in_at_most_one_study_of_twenty(sizes, noise):
    """Without Holm's correction it is in 45 studies of 100 with 15 comparisons, and in 17 with five."""
    settings, studies, generator = ["a", "b", "c", "d", "e"], 300, np.random.default_rng(0)
    plan, wrong = plan_of(settings, sizes, baselines=("grpo-plus1",)), 0
    cells = itertools.product(settings, sizes, ("mc-grpo", "grpo-plus1"))
    truths = {CellKey(setting, "default", "in", "sums", "greedy", *cell): 0.0 for setting, *cell in cells}
    for _ in range(studies):
        found = answer_of(plan, simulated(generator, truths, **noise))
        wrong += found.part("grpo-plus1").word.isin(["better", "worse"]).any()
    assert binomtest(int(wrong), studies, 0.05, alternative="greater").pvalue > 0.01, wrong


def test_what_was_lost_is_of_what_was_run(tmp_path):
    """Two of six seeds of the median are there; rollouts without a reward; completions without an answer."""

    def with_measures(method, seeds=3, **of):
        yield cell(method, 2, 0.4, seeds=seeds, measure="avg@4")
        yield cell(method, 2, 9.0, seeds=seeds, measure="seconds", role="train", benchmark="train")
        for name, value in of.items():
            trained = {"role": "train", "benchmark": "train"} if name in ("rollouts", "frac_unscorable") else {}
            yield cell(method, 2, value, seeds=seeds, measure=name.replace("rate_", "rate-"), **trained)

    rows = [*with_measures("grpo", rollouts=200, frac_unscorable=0.0, rate_unparseable=0.02, rate_timeout=0.002)]
    rows += with_measures("mc-grpo", seeds=1, rollouts=300, frac_unscorable=0.01, rate_unparseable=0.0)
    # The best of several variants is one of them, whose trainings are counted there
    rows += [cell("grpo", 2, 9.0, measure="seconds", role="train", benchmark="train", variant="best")]
    assert lost(frame(tmp_path, rows), {"best": ["default", "other"]}) == (
        "4 of 6 trainings finished; of 900 rollouts 3 without a reward; of 2,000 graded completions 30 unparseable, 3 "
        "timed out in grading, 0 failed in grading."
    )


def test_trainings_that_had_nothing_to_learn_from_are_counted(tmp_path):
    """As where a model solves no problem: every group has equal rewards."""
    shares = {"grpo": 1.0, "mc-grpo": 1.0, "grpo-plus1": 0.99}
    rows = [cell(name, 2, 9.0, measure="seconds", role="train", benchmark="train") for name in shares]
    rows += [
        cell(name, 2, share, measure="frac_groups_zero", role="train", benchmark="train")
        for name, share in shares.items()
    ]
    assert lost(frame(tmp_path, rows)) == (
        "9 of 9 trainings finished; 6 of them had no advantage but 0 at any step, so that nothing could be learned."
    )
