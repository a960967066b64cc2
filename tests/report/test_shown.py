"""The n under a figure is that of the cells that it shows."""

import pytest
from cells import cell, frame, gains_frame, seconds

from mcgrpo.report import shown
from mcgrpo.report.catalogue import FIGURES
from mcgrpo.report.page.contents import _figure_n

DRAWN = [cell("none", 0, 0.2), cell("grpo", 2, 0.5), cell("grpo", 2, 0.6, variant="composite")]
BESIDE = [
    cell("grpo", 8, 0.5, seeds=2),
    cell("dapo", 2, 0.5, seeds=1, variant="composite"),
    cell("grpo", 2, 0.5, seeds=1, setting="toy_b"),
    seconds("grpo", 2, 3.0),
]


def test_every_figure_with_data_says_what_it_shows():
    assert all(callable(getattr(shown, figure.module)) for figure in FIGURES.values() if figure.sources)


def test_what_a_figure_leaves_out_is_not_counted(tmp_path):
    alone, beside = frame(tmp_path, DRAWN), frame(tmp_path, [*DRAWN, *BESIDE])
    assert _figure_n("composite", summary=alone) == "3 seeds of each trained cell; 100 problems on sums"
    assert _figure_n("composite", summary=beside) == _figure_n("composite", summary=alone)
    assert len(shown.composite(beside)) == len(DRAWN)


def test_cells_that_are_planned_and_not_measured_are_counted(tmp_path):
    summary = frame(tmp_path, [*DRAWN, cell("mc-grpo", 2, variant="composite")])
    assert _figure_n("composite", summary=summary).startswith("3 seeds planned, 0 to 3 there")


@pytest.mark.parametrize("name", ["composite", "variants", "sign-flips", "gains-greedy", "ood"])
def test_a_figure_that_shows_nothing_has_no_n(tmp_path, name):
    assert (
        _figure_n(name, gains=gains_frame(tmp_path), summary=frame(tmp_path, [cell("grpo", 2, 0.5)]))
        == "nothing measured yet"
    )
