import pytest
from cells import cell, frame, study

from mcgrpo.report.headline import headline

ABOVE, BELOW, ZERO = (0.05, 0.04, 0.06), (-0.05, -0.06, -0.04), (0.0, -0.1, 0.1)


def first_line(tmp_path, *gains):
    methods = ("mc-grpo", "mc-dapo", "mc-dr-grpo")
    rows = [cell(method, 2, 0.5, gain=gain) for method, gain in zip(methods, gains, strict=False)]
    return headline(frame(tmp_path, rows)).splitlines()[0]


@pytest.mark.parametrize(
    ("gains", "answer"),
    [
        (
            (ABOVE, ABOVE),
            "Yes. Of 2 comparisons with the mean (settings, losses, decodings) it is better in 2, worse in 0",
        ),
        ((ABOVE, ZERO), "In part. Of 2 comparisons"),
        ((ABOVE, BELOW), "It depends. Of 2"),
        ((BELOW,), "No, it hurts. Of 1 comparison with the mean"),
        ((BELOW, ZERO), "No, in part it hurts."),
        ((ZERO, ZERO), "Not measurably."),
        (((0.1, None, None),), "Cannot be told."),
        ((None,), "Not known: none of 1 planned comparison has been run."),
    ],
)
def test_the_first_line_answers(tmp_path, gains, answer):
    assert first_line(tmp_path, *gains).startswith(f"**Does the median help at G=2 here?** {answer}")


def test_missing_comparisons_are_counted(tmp_path):
    assert first_line(tmp_path, ABOVE, None).endswith("1 planned comparison missing.")


def test_sentences_say_which_way_it_points_with_the_control_beside_it(tmp_path):
    text = headline(frame(tmp_path, study()))
    sampled, greedy = [line for line in text.splitlines() if line.startswith("- At")]
    assert sampled.startswith(
        "- At G=2, sampled (avg@4), the median (MC-GRPO) beats the mean (GRPO): +5.0 points [+4.5, +6.0] (3 seeds); "
    )
    assert "the control (GRPO+1), is indistinguishable from the mean (GRPO): +1.0 points [−10.0, +12.0]" in sampled
    assert "greedy, the median (MC-GRPO) falls behind the mean (GRPO): −6.0 points [−7.0, −5.5] (3 seeds)" in greedy
    assert "**toy_a on sums**, accuracy, with its 95% interval over seeds and problems:" in text


def test_what_has_not_been_run_is_named(tmp_path):
    text = headline(frame(tmp_path, [cell("grpo", 2, 0.5), cell("mc-grpo", 2)]))
    assert text.endswith("- Missing: MC-GRPO.\n")


def test_without_a_baseline_or_a_median(tmp_path):
    assert "(MC-DAPO) has no run of the mean (DAPO) to be compared with." in headline(
        frame(tmp_path, [cell("mc-dapo", 2, 0.5)])
    )
    assert headline(frame(tmp_path, [cell("dapo", 2, 0.5)])) == "No median-centred run to compare.\n"


def test_a_median_whose_mean_the_study_does_not_plan(tmp_path):
    """As `mcgrpo.summarise` writes it: no name of a baseline, not only no number."""
    text = headline(frame(tmp_path, [cell("mc-grpo", 2, 0.5, baseline=None)]))
    assert "** Not asked: the study plans no mean-centred method to compare it with.\n" in text
    assert "(MC-GRPO) has no run of the mean (GRPO) to be compared with." in text
    beside = [cell("mc-grpo", 2, 0.5, baseline=None), cell("dapo", 2, 0.5), cell("mc-dapo", 2, 0.5, gain=ABOVE)]
    assert "** Yes. Of 1 comparison with the mean" in headline(frame(tmp_path, beside))
