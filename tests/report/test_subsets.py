"""Any methods make a study: what its summary says is written whatever stands beside each of them."""

import itertools

import pytest
from cells import cell, frame

from mcgrpo.frames import is_median
from mcgrpo.methods import METHODS
from mcgrpo.report.page.answer import answer
from mcgrpo.report.tables import write_tables


def summary_of(tmp_path, methods):
    """As `mcgrpo.summarise` writes it: a baseline is named where the study plans it."""
    rows = [cell("none", 0, 0.3)]
    for method in methods:
        baseline = METHODS[method].baseline if METHODS[method].baseline in methods else None
        rows.append(cell(method, 2, 0.5, baseline=baseline, gain=(0.05, 0.04, 0.06) if baseline else None))
    return frame(tmp_path, rows)


@pytest.mark.parametrize("size", [1, 2, len(METHODS)])
def test_one_method_or_two_or_all_have_their_tables_and_their_answer(tmp_path, size):
    for methods in itertools.combinations(METHODS, size):
        summary = summary_of(tmp_path, methods)
        write_tables(summary, tmp_path)
        headline = (tmp_path / "headline.md").read_text()
        medians = [method for method in methods if is_median(method)]
        compared = [method for method in medians if METHODS[method].baseline in methods]
        assert ("Does the median help" in headline) is bool(medians), methods
        assert ("Not asked" in headline) is bool(medians and not compared), methods
        shown = [row for row in answer(summary).comparisons if not row.is_control]
        assert len(shown) == len(compared), methods
        assert all(METHODS[method].label in (tmp_path / "tables.md").read_text() for method in methods)
