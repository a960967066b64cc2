"""The numbers of docs/paper-and-code.md come out of a summary as they stand in it."""

import sys
from pathlib import Path

from answers import answer_of, plan_of
from cells import cell, flip, frame
from claim_rows import pair, scores_of
from report_study import PageStudy

from mcgrpo.report.answer import answer_table, markdown
from mcgrpo.report.tables import frame as frames
from mcgrpo.study.paths import ResultFiles

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

import paper_and_code  # noqa: E402
import readme  # noqa: E402

SURE, UNSURE = (0.04, 0.01, 0.07), (-0.01, -0.03, 0.02)


def rates(about, rate):
    """Of both oracles and both conventions at k=2; `cell` makes intervals two points wide on either side."""
    names = [f"{about}/oracle-{oracle}/{zeros}/k2" for oracle in ("mean", "median") for zeros in ("strict", "zeros")]
    return [flip(name, rate, n=16) for name in names]


def study():
    """MC-GRPO at G=2: surely better greedy in every variant, sampled not told apart; the same at default, mirrored."""
    sampled = {"measure": "avg@4"}
    rows = [cell("mc-grpo", 2, 0.5, gain=UNSURE), cell("mc-grpo", 2, 0.4, gain=SURE, **sampled)]
    for name in (*paper_and_code.VARIANTS, "flip-0.2", "mad-zero-std"):
        rows += [cell("mc-grpo", 2, 0.5, gain=SURE, change=SURE, variant=name)]
        rows += [cell("mc-grpo", 2, 0.4, gain=UNSURE, change=UNSURE, variant=name, **sampled)]
    pairs = {"mean": 0.3, "median": 0.3, "median-plus1": 0.2, "mean-plus1": 0.29}
    return rows + [one for about, rate in pairs.items() for one in rates(about, rate)]


def lines(text, start):
    return [
        [part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line.startswith(start)
    ]


def test_changes_and_gains_have_intervals_and_seeds_and_are_bold_where_sure(tmp_path):
    text = paper_and_code.measured(frame(tmp_path, study()))
    sure, unsure = "**+4.0 [+1.0, +7.0]**", "−1.0 [−3.0, +2.0]"
    changed, gained = lines(text, "| mixed-groups")
    assert changed == ["mixed-groups", "MC-GRPO, G=2", sure, unsure, "3"]
    assert gained[2:] == [sure, unsure, unsure, sure, "3; 3"]
    assert "100 problems" in text and "So are 6 of 12." in text
    names = [row[0] for row in lines(text.split("### Does")[0], "| ")][1:]
    assert names == [*paper_and_code.VARIANTS, "flip-0.2"]


def test_the_readme_has_the_answer_with_its_numbers_and_says_what_was_run(tmp_path, monkeypatch):
    scores = scores_of(pair(0.05, setting="toy_a"))
    (control,) = {key._replace(method="grpo-plus1") for key in scores}
    found = answer_of(plan_of(["toy_a"]), scores, [control])
    (tmp_path / "headline.md").write_text(markdown(found, "nothing."))
    (tmp_path / "tables.md").write_text(frames.markdown(answer_table(found)))
    (tmp_path / "claims.md").write_text("By the paper's own numbers: 1 holds.")
    monkeypatch.setattr(readme, "REPORTS", tmp_path)
    monkeypatch.setattr(readme, "FILES", ResultFiles(PageStudy(tmp_path).results))
    text = readme.summary()
    assert text.startswith("**Does the median help? Not known yet.** MC-GRPO against GRPO+1")
    assert "+5.0 [+4.0, +6.0] better" in text and "\n\n![Gains" in text
    assert "Of the study" not in text and "1 holds" in text
    assert "9 trainings, 1 to 2 seeds for each cell, of 21 November 2026, at commit `c0ffee0000`." in text
