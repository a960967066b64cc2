"""What a study found, in lines: they have the numbers and verdicts of its files, each after its own question."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from answers import comparisons_of, plan_of, planned_by
from cells import cell, frame
from claim_rows import simulated
from studies import load
from test_one_word import write_study

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.claims import questions
from mcgrpo.analyse.frames import read_records
from mcgrpo.analyse.records import CellSignal, Contrast
from mcgrpo.report import wording
from mcgrpo.study.paths import ResultFiles
from mcgrpo.sums import write_table

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow/scripts"))

import in_short
import readme

ROOT = Path(__file__).parents[2]
PLACES = [
    ("docs/mini-study.md", readme.SHORT),
    *((f"{page}.md", readme.REVIEWER) for page in ("README", "docs/mini-study", "docs/reviewer")),
    *((f"{page}.md", readme.MARK) for page in ("README", "docs/mini-study", "docs/paper-and-code", "docs/mad-zero")),
]
SETTINGS = ("toy-qwen3", "toy-llama", "toy-qwen3-weak")
BY_PAPER = (0.4, 0.5, 0.52, 0.5)
"""The accuracies by the paper's grader of the cells of `test_a_difference_by_another_grader_is_that_of_the_means`."""


def answers_of(text):
    """Question -> what follows it."""
    return dict(line.removeprefix("- **").split("** ", 1) for line in text.splitlines())


def printed(row):
    number = wording.printed(row.value, row.low, row.high, verdict=row.verdict, detectable=row.detectable)
    return f"{number} ({row.setting})"


def test_the_primary_comparisons_follow_their_questions_as_they_are_in_the_table(made_once):
    files = ResultFiles(made_once("one-word", write_study) / "results")
    found = answers_of(in_short.of_toys(files))
    with_mean, rest = found["Better than the mean at the same G?"], found["The median, or the extra rollout?"]
    with_control = rest.split(in_short.AGAINST_CONTROL)[1]
    rows = [row for row in read_records(files.comparisons, Contrast) if row.family.startswith("primary")]
    assert len(rows) == 12
    for row in rows:
        own, other = (with_mean, with_control) if row.other_method == "grpo" else (with_control, with_mean)
        assert printed(row) in own and printed(row) not in other
        line = f"MC-GRPO − {'GRPO' if row.other_method == 'grpo' else 'GRPO+1'}, {row.setting}, G={row.num_generations}"
        assert (f"{line}: {row.seeds} seeds; " in found["Not decided?"]) == (row.verdict == "inconclusive")
    assert found["Is it stable?"].startswith("missing") and "missing" in found["Graded by `robust`?"]
    assert found["Does the computed signal predict?"] == "Not computed."


def test_a_difference_by_another_grader_is_that_of_the_means(tmp_path):
    shares = {("mc-grpo", 2): 0.5, ("grpo-plus1", 2): 0.54, ("mc-grpo", 8): 0.6, ("grpo-plus1", 8): 0.575}
    rows = [cell(method, size, mean, measure="robust-avg@4") for (method, size), mean in shares.items()]
    assert in_short.gone_by_robust(frame(tmp_path, rows)) == "missing"  # of what?
    rows += [cell(method, size, mean, measure="avg@4") for (method, size), mean in zip(shares, BY_PAPER, strict=True)]
    cells = frame(tmp_path, [*rows, cell("mc-grpo", 2, 0.1), cell("grpo-plus1", 2, 0.9)])
    assert in_short.regraded(cells) == "G=2 −4.0 (toy_a); G=8 +2.5 (toy_a)"
    assert in_short.gone_by_robust(cells) == "−25% to 60%"  # of -0.1 and of 0.02
    same = [cell(method, size, 0.5, measure="avg@4") for method, size in shares]
    assert in_short.gone_by_robust(frame(tmp_path, [*same, *rows[:4]])) == "missing"
    assert in_short.regraded(frame(tmp_path, same)) == "missing"


@pytest.mark.parametrize(("detectable", "seeds"), [(0.02, 64), (0.011, 20), (0.01, 16)])
def test_seeds_that_would_decide_grow_with_the_square_of_what_is_detectable(detectable, seeds):
    row = Contrast("primary, grpo", seeds=16, detectable=detectable, equivalence_margin=0.01)
    assert in_short.seeds_for(row) == seeds


def test_a_reviewer_s_question_has_the_average_that_decides_it(tmp_path):
    asked = load("reviewer")["questions"]
    terms = {(row["id"], term.get("variant", "default"), term.get("measure", "greedy"),
              term["num_generations"], term["method"]) for row in asked
             for each in row["comparisons"] for term in each["terms"]}  # fmt: skip
    truths = {CellKey(setting, variant, "in", "two-step", measure, size, method): 0.02 * (method == "mc-grpo")
              for setting in SETTINGS for _, variant, measure, size, method in sorted(terms)}  # fmt: skip
    scores = simulated(np.random.default_rng(1), truths)
    plan = replace(planned_by(plan_of(SETTINGS), scores), questions=asked)
    files, claims = ResultFiles(tmp_path / "results"), questions(asked)
    rows = comparisons_of(plan, scores, claims=claims)
    write_table(files.comparisons, Contrast, rows)
    write_table(files.signals, CellSignal, [])
    found = answers_of(in_short.of_reviewers(plan, files))
    decides = {row.family: row for row in rows if row.family.startswith("question") and row.comparison == 0}
    for theme, ids in in_short.THEMES.items():
        assert found[theme].count("; ") == len(ids) - 1
        for name in ids:
            row, says = decides[f"question {name}"], next(each["says"] for each in asked if each["id"] == name)
            value = wording.printed(row.value / 100, row.low / 100, row.high / 100, verdict=row.verdict)
            assert f'"{says.rstrip(".")}": {value}' in found[theme]


@pytest.mark.parametrize(("page", "mark"), PLACES)
def test_each_page_has_one_place_for_them_which_can_be_filled_again(tmp_path, page, mark):
    copy = tmp_path / "page.md"
    copy.write_text((ROOT / page).read_text(encoding="utf-8"), encoding="utf-8")
    for text in ("first", "second"):
        readme.put(copy, mark, text)
    found = copy.read_text(encoding="utf-8")
    assert found.count("\nsecond\n") == 1 and "\nfirst\n" not in found
