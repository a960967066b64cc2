from functools import partial

import numpy as np
import pytest
from matplotlib.colors import same_color
from synthetic import (
    BOTH,
    accuracy_cells,
    cell,
    curves,
    drawn,
    heights,
    lines,
    point,
)

from mcgrpo.report.figures import accuracy, rewards
from mcgrpo.study.methods import METHODS


def test_accuracy_draws_means_and_intervals_of_the_summary(frame):
    cells = [
        cell("grpo", 2, 0.5, half=0.03),
        cell("grpo", 4, 0.6, half=None, seeds=1),
        cell("mc-grpo", 2, 0.55),
        cell("mc-grpo", 4, None),
        cell("grpo-plus1", 2, 0.99),
        cell("none", 0, 0.45, seeds=1),
    ]

    def look(figure):
        (axes,) = figure.axes
        mean, median = lines(axes)["mean-centred"], lines(axes)["median-centred"]
        assert (mean.points.get_marker(), mean.points.get_linestyle()) == ("o", "--")
        assert (median.points.get_marker(), median.points.get_linestyle()) == ("*", "-")
        np.testing.assert_allclose(heights(mean), [50, 60])
        np.testing.assert_allclose(heights(median), [55, np.nan])  # a missing cell is a gap, not a zero
        np.testing.assert_allclose([bar[:, 1] for bar in mean.bars], [[47, 53]])  # none at one seed of no problems
        dotted = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == ":"]
        return dotted, axes.get_title(), axes.get_ylabel()

    assert drawn(accuracy, frame(cells), look, role="in", decodings=("greedy",)) == ([45.0], "GRPO", "toy_a\nsums")


def test_the_control_alone_is_nothing_to_show(frame):
    with pytest.raises(ValueError, match="nothing to show: no greedy accuracy of a trained method"):
        drawn(accuracy, frame([cell("grpo-plus1", 2, 0.9)]), lambda figure: None, role="in", decodings=("greedy",))


def test_differences_of_a_point_are_not_flattened_by_an_untrained_model_that_is_far_off(frame):
    cells = [cell("grpo", 2, 0.80, half=0.01), cell("mc-grpo", 2, 0.81, half=0.01), cell("dapo", 2, 0.80, half=0.01)]

    def look(figure):
        low, high = figure.axes[0].get_ylim()
        ticks = [tick for tick in figure.axes[0].get_yticks() if low <= tick <= high]
        return [text.get_text() for axes in figure.axes for text in axes.texts], high - low, len(ticks)

    show = partial(drawn, look=look, role="in", decodings=("greedy",))
    notes, span, ticks = show(accuracy, frame([*cells, cell("none", 0, 0.3, seeds=1)]))
    assert notes == ["\N{DOWNWARDS ARROW} untrained 30.0"] * 2
    assert span < 4 and ticks >= 3  # bars from 79 to 82
    notes, span, _ = show(accuracy, frame([*cells, cell("none", 0, 0.785, seeds=1)]))
    assert notes == [] and span < 5


def test_panels_are_losses_by_settings_and_benchmarks(frame):
    cells = [*accuracy_cells(BOTH), cell("mc-dapo", 2, 0.5, setting="toy_b", benchmark="long_name")]
    look = lambda figure: [(axes.get_ylabel(), axes.get_title()) for axes in figure.axes]  # noqa: E731
    panels = drawn(accuracy, frame(cells), look, role="in", decodings=("greedy",))
    assert panels == [("toy_a\nsums", "GRPO"), ("", "DAPO"), ("toy_b\nlong_name", ""), ("", "")]


@pytest.mark.parametrize(
    ("seeds", "half", "words"),
    [
        ((5, 5), 0.02, "bars: 95% interval over seeds and problems"),
        ((1, 1), 0.02, "bars: 95% interval over problems"),
        ((5, 1), 0.02, "bars: 95% interval over seeds and problems (over problems at one seed)"),
        ((1, 1), None, "G, rollouts in the update"),
    ],
)
def test_the_axis_says_what_bars_are_over(frame, seeds, half, words):
    cells = [cell("grpo", g, 0.5, seeds=n, half=half) for g, n in zip((2, 4), seeds, strict=True)]
    label = drawn(accuracy, frame(cells), lambda f: f.get_supxlabel(), role="in", decodings=("greedy",))
    assert label.split("\n")[-1] == words


@pytest.mark.parametrize("losses", [1, 3])
def test_the_legend_fits(frame, losses):
    def look(figure):
        legend = figure.legends[0].get_window_extent()
        assert legend.x0 >= 0 and legend.x1 <= figure.bbox.x1 and legend.y1 <= figure.bbox.y1
        return any(legend.overlaps(axes.get_tightbbox()) for axes in figure.axes), figure.get_figwidth()

    cells = accuracy_cells(list(METHODS)[: 2 * losses])
    width = {1: 3.25, 3: 6.75}[losses]
    assert drawn(accuracy, frame(cells), look, role="in", decodings=("greedy",)) == (False, width)


def test_rewards_are_smoothed_over_the_window_that_is_stated(curve_frame):
    def look(figure):
        assert [axes.get_title() for axes in figure.axes] == ["G = 2", "G = 4"]
        line = figure.axes[0].lines[0]
        band = figure.axes[0].collections[0].get_datalim(figure.axes[0].transData)
        return line.get_ydata(), figure.get_supxlabel(), band

    noise = (-0.02, 0.0, 0.02)
    points = [
        point("grpo", g, seed, step, reward=0.05 * step + noise[seed])
        for g in (2, 4)
        for seed in range(3)
        for step in range(1, 21)
    ]
    values, label, band = drawn(rewards, curve_frame(points), look)
    assert label == "step (rolling mean over 3, band: 95% interval over seeds)"
    # Rewards are 0.05 a step: a centred mean of three leaves the line, but for its ends.
    np.testing.assert_allclose(values[1:-1], 0.05 * np.arange(2, 20))
    np.testing.assert_allclose([values[0], values[-1]], [0.075, 0.975])
    assert band.y0 == pytest.approx(0.075 - 4.302653 * 0.02 / np.sqrt(3), rel=1e-5)


def test_a_loss_has_a_row_and_its_methods_differ_in_colour_and_dashes(curve_frame):
    points = curves(("toy_a",), ("grpo", "mc-grpo", "grpo-plus1", "dapo"), (2,), seeds=1, steps=3)

    def look(figure):
        assert figure.get_supxlabel() == "step (one seed)"
        return [[(line.get_color(), line.get_linestyle()) for line in axes.lines] for axes in figure.axes]

    (grpo, median, control), (dapo,) = drawn(rewards, curve_frame(points), look)
    assert (grpo[1], median[1], control[1]) == ("--", "-", ":")
    assert not any(same_color(a[0], b[0]) for a, b in ((grpo, median), (grpo, control), (median, control)))
    assert same_color(grpo[0], dapo[0]) and grpo[1] == dapo[1]


@pytest.mark.slow
def test_losses_of_many_settings_share_a_panel(curve_frame):
    points = curves(("a", "b", "c"), budgets=(2, 4), seeds=1, steps=3)
    look = lambda figure: [len(axes.lines) for axes in figure.axes]  # noqa: E731
    assert drawn(rewards, curve_frame(points), look) == [6] * 6


def test_a_row_whose_first_panel_is_empty_has_numbers_too(frame):
    cells = [*accuracy_cells(), *accuracy_cells(("dapo", "mc-dapo"), setting="toy_b")]

    def look(figure):
        panels = [axes for axes in figure.axes if axes.containers]
        return [axes.yaxis.get_tick_params()["labelleft"] for axes in panels]

    assert drawn(accuracy, frame(cells), look, role="in", decodings=("greedy",)) == [True, False, False, True]
