"""Accuracy against steps, rollouts drawn and seconds."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import curves, drawn, point

from mcgrpo.report.figures import budget


def test_the_same_accuracies_stand_at_steps_rollouts_and_seconds_so_far(curve_frame):
    seconds = (0.5, 0.0, 0.25, 0.25)
    points = [
        point(method, 2, seed, step, seconds, accuracy=0.25 * step + 0.1 * seed)
        for method in ("grpo", "mc-grpo")
        for seed in (0, 1)
        for step in (1, 2, 3)
    ]

    def look(figure):
        return [[(line.get_label(), line.get_xdata(), line.get_ydata()) for line in axes.lines] for axes in figure.axes]

    panels = drawn(budget, curve_frame(points), look)
    assert [[name for name, *_ in panel] for panel in panels] == [["GRPO, G = 2", "MC-GRPO, G = 2"]] * 3
    for (_, x, y), (_, more, _), expected in zip(
        (panel[0] for panel in panels),
        (panel[1] for panel in panels),
        ([[1, 2, 3]] * 2, [[16, 32, 48], [24, 48, 72]], [[1, 2, 3]] * 2),
        strict=True,
    ):
        np.testing.assert_allclose([x, more], expected)
        np.testing.assert_allclose(y, [30, 55, 80])  # the mean over seeds, in percent


def test_steps_are_whole(curve_frame):
    points = [point("grpo", 2, 0, step, accuracy=0.1 * step) for step in (1, 2, 3)]
    ticks = drawn(budget, curve_frame(points), lambda figure: figure.axes[0].get_xticks())
    assert {1, 2, 3} <= {*ticks} and all(tick == round(tick) for tick in ticks)


def test_methods_of_other_losses_and_steps_that_draw_nothing_are_left_out(curve_frame):
    points = [point("grpo", 2, 0, 1), point("grpo", 2, 0, 2, accuracy=None), point("dapo", 2, 0, 1)]
    (line,) = drawn(budget, curve_frame(points), lambda figure: figure.axes[0].lines)
    assert (line.get_label(), list(line.get_xdata())) == ("GRPO, G = 2", [1])


def test_the_seconds_of_steps_that_draw_nothing_count(curve_frame):
    """As with several updates on the same rollouts."""
    drew, again = (1.0, 0.0, 0.0, 3.0), (0.0, 0.0, 0.0, 3.0)
    points = [point("grpo", 2, 0, step, drew if step % 2 else again) for step in (1, 2, 3)]
    points[1] = replace(points[1], rollouts=None, accuracy=None)
    (line,) = drawn(budget, curve_frame(points), lambda figure: figure.axes[2].lines)
    np.testing.assert_allclose(line.get_xdata(), [4, 11])


def test_settings_are_rows(curve_frame):
    names = drawn(budget, curve_frame(curves(steps=3)), lambda figure: [axes.get_ylabel() for axes in figure.axes])
    assert names == ["toy_a", "", "", "toy_b", "", ""]


def test_without_accuracies_there_is_nothing_to_show(curve_frame):
    with pytest.raises(ValueError, match="nothing to show: no step of GRPO's loss has rollouts and an accuracy"):
        drawn(budget, curve_frame([point("grpo", 2, 0, 1, accuracy=None)]), lambda figure: None)
