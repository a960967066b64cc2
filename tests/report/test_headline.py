import pytest
from cells import cell, frame, gains_frame, seed_gains, study

from mcgrpo.report.tables.headline import headline, latex, markdown

ABOVE, BELOW, WIDE, NEAR = (0.05, 0.04, 0.06), (-0.05, -0.06, -0.04), (0.0, -0.1, 0.1), (0.0, -0.004, 0.005)


def told(tmp_path, rows, gains=()):
    return markdown(headline(frame(tmp_path, rows), gains_frame(tmp_path, gains)))


def first_line(tmp_path, *gains):
    methods = ("mc-grpo", "mc-dapo", "mc-dr-grpo")
    rows = [cell(method, 2, 0.5, gain=gain) for method, gain in zip(methods, gains, strict=False)]
    return told(tmp_path, rows).splitlines()[0]


@pytest.mark.parametrize(
    ("gains", "answer"),
    [
        ((ABOVE, ABOVE), "Yes. Of 2 comparisons with the mean (settings, losses, decodings): 2 better, 0 worse."),
        ((ABOVE, WIDE), "In part. Of 2 comparisons"),
        ((ABOVE, BELOW), "It depends. Of 2"),
        ((BELOW,), "No, it hurts. Of 1 comparison with the mean"),
        ((BELOW, WIDE), "No, in part it hurts."),
        ((NEAR, NEAR), "No, it makes no difference. Of 2 comparisons"),
        ((WIDE, WIDE), "Cannot be told."),
        ((WIDE, NEAR), "Cannot be told."),
        (((0.1, None, None),), "Cannot be told."),
        ((None,), "Not known. None of 1 planned comparison has been run."),
    ],
)
def test_the_first_line_answers(tmp_path, gains, answer):
    assert first_line(tmp_path, *gains).startswith(f"**Does the median help at G=2 here?** {answer}")


def test_the_first_line_says_how_far_what_is_not_sure_reaches(tmp_path):
    line = first_line(tmp_path, ABOVE, WIDE, NEAR)
    assert "1 better, 0 worse, 1 equivalent (within 1 point), 1 inconclusive (a true difference of 3.4 points" in line


def test_at_one_seed_there_is_no_word(tmp_path):
    one = cell("mc-grpo", 2, 0.5, gain=(0.05, 0.04, 0.06), seeds=1, difference_verdict=None, difference_detectable=None)
    found = told(tmp_path, [one])
    assert "Cannot be told." in found and "1 at one seed" in found and "**One seed** at G=2" in found


def test_missing_comparisons_are_counted(tmp_path):
    assert first_line(tmp_path, ABOVE, None).endswith("1 planned comparison missing.")


def test_each_comparison_opens_with_its_verdict_and_ends_with_its_seeds_and_its_control(tmp_path):
    rows = study()
    (found,) = [row for row in rows if row.method == "mc-grpo" and row.difference and row.difference > 0]
    text = told(tmp_path, rows, seed_gains(found, 0.06, 0.045, 0.045))
    sampled, greedy = [line for line in text.splitlines() if line.startswith("- ")]
    assert sampled == (
        "- **Better** at G=2, sampled (avg@4): MC-GRPO against GRPO, +5.0 points [+4.5, +6.0]; seeds +6.0, +4.5, +4.5. "
        "Control, GRPO+1 against GRPO: **inconclusive**, +1.0 points [−10.0, +12.0]; 3.4 points could have been seen."
    )
    assert greedy.startswith("- **Worse** at G=2, greedy: MC-GRPO against GRPO, −6.0 points [−7.0, −5.5]. Control")
    assert "**toy_a on sums**, difference in accuracy, with its 95% interval over seeds and problems:" in text


def test_the_first_line_says_what_the_control_gains_beside_the_median(tmp_path):
    controls = [cell("grpo-plus1", 2, 0.5, gain=ABOVE), cell("grpo-plus1", 2, 0.5, gain=None, setting="other")]
    medians = [cell("mc-grpo", 2, 0.5, gain=(0.04, 0.03, 0.05)), cell("mc-grpo", 2, 0.5, gain=ABOVE, setting="other")]
    assert (
        told(tmp_path, [*medians, *controls])
        .splitlines()[0]
        .endswith(
            "2 better, 0 worse. The control GRPO+1 draws as many rollouts and keeps the mean: of 1 comparison "
            "1 better, 0 worse; its gain is as large as the median's or larger in 1."
        )
    )


@pytest.mark.parametrize(("excludes", "words"), [(True, "is excluded"), (False, "is not excluded")])
def test_whether_the_papers_gain_is_excluded_stands_beside_it(tmp_path, excludes, words):
    printed = {"published_difference": 0.0462, "difference_excludes_published": excludes}
    assert f"; the paper's +4.62 {words}." in told(tmp_path, [cell("mc-grpo", 2, 0.5, gain=WIDE, **printed)])


def test_what_has_not_been_run_is_named(tmp_path):
    text = told(tmp_path, [cell("grpo", 2, 0.5), cell("mc-grpo", 2)])
    assert text.endswith("- **Missing** at G=2, greedy: MC-GRPO against GRPO.\n")


def test_without_a_baseline_or_a_median(tmp_path):
    alone = told(tmp_path, [cell("mc-dapo", 2, 0.5, baseline=None)])
    assert "Not asked. The study plans no mean-centred method to compare it with." in alone
    assert told(tmp_path, [cell("dapo", 2, 0.5)]).endswith("Not asked. No median-centred run to compare.\n")


def test_latex_says_the_same(tmp_path):
    rows = [cell("mc-grpo", 2, 0.5, gain=BELOW, setting="toy_a"), cell("grpo", 2, 0.5)]
    text = latex(headline(frame(tmp_path, rows), gains_frame(tmp_path)))
    assert r"\textbf{Does the median help at G=2 here?} \textbf{No, it hurts.} Of 1 comparison" in text
    assert r"\item \textbf{Worse} at G=2, greedy: MC-GRPO against GRPO, $-$5.0 points [$-$6.0, $-$4.0]." in text
    assert r"\textbf{toy\_a on sums}" in text


def test_a_median_without_a_baseline_at_its_smallest_g_is_compared_at_the_next(tmp_path):
    rows = [cell("mc-grpo", 2, 0.5, baseline=None), cell("mc-grpo", 8, 0.5, gain=ABOVE)]
    assert told(tmp_path, rows).startswith("**Does the median help at G=8 here?** Yes.")


def test_with_comparisons_missing_the_answer_is_so_far(tmp_path):
    assert "** So far yes. Of 1 comparison" in first_line(tmp_path, ABOVE, None)
    assert "** Cannot be told. Of 1 comparison" in first_line(tmp_path, WIDE, None)


def test_a_difference_of_one_shared_seed_is_said_to_be_over_problems(tmp_path):
    shared = cell("mc-grpo", 2, 0.5, gain=ABOVE, difference_seeds=1)
    assert "difference in accuracy, with its 95% interval over problems only" in told(tmp_path, [shared])


def test_a_line_beside_the_answer_counts_what_was_lost(tmp_path):
    """Two of six seeds of the median; rollouts without a reward; completions without an answer."""

    def with_measures(method, **of):
        seeds = of.pop("seeds", 3)
        yield cell(method, 2, 0.5, seeds=seeds, gain=ABOVE if method == "mc-grpo" else None)
        yield cell(method, 2, 0.4, seeds=seeds, measure="avg@4", gain=ABOVE if method == "mc-grpo" else None)
        for name, value in of.items():
            trained = {"role": "train", "benchmark": "train"} if name in ("rollouts", "frac_unscorable") else {}
            yield cell(method, 2, value, seeds=seeds, measure=name.replace("rate_", "rate-"), **trained)

    rows = [*with_measures("grpo", rollouts=200, frac_unscorable=0.0, rate_unparseable=0.02, rate_timeout=0.002)]
    rows += with_measures("mc-grpo", seeds=1, rollouts=300, frac_unscorable=0.01, rate_unparseable=0.0)
    assert told(tmp_path, rows).splitlines()[2] == (
        "Lost in these comparisons: 2 of 6 trainings; 3 of 900 rollouts unscorable; of 2,000 graded completions 30 "
        "unparseable, 3 timed out in grading, 0 failed in grading."
    )
