from functools import partial

import numpy as np
import pytest
from synthetic import accuracy_cells, cell, drawn, flip_cells, heights, injected_cells, lines, missing, summary_frame

from mcgrpo.report.figures import injected_flips, sign_flips


@pytest.fixture
def frame(tmp_path):
    return partial(summary_frame, tmp_path)


def test_rates_are_those_of_the_untrained_model_against_the_oracles_mean(frame):
    trained = [cell("grpo", 8, 0.9, measure=row.measure, role="flips") for row in flip_cells()]

    def look(figure):
        assert [axes.get_title() for axes in figure.axes] == ["toy_a, untrained"]
        found = lines(figure.axes[0])
        # 0.3 / k, the median 6 points above, zeros 15 more (synthetic.flip_cells).
        np.testing.assert_allclose(heights(found["mean, strict"]), [15, 7.5, 3.75])
        np.testing.assert_allclose(heights(found["mean, zeros"]), [30, 22.5, 18.75])
        np.testing.assert_allclose(heights(found["median, zeros"]), [36, 28.5, 24.75])
        np.testing.assert_allclose(found["mean, strict"].bars[0][:, 1], [13.5, 16.5])
        sampled = [
            line for line in figure.axes[0].lines if line.get_linestyle() == "None" and line.get_marker() in "o*"
        ]
        assert all(line.get_markerfacecolor() == "white" for line in sampled)
        np.testing.assert_allclose(sorted(line.get_ydata()[0] for line in sampled), [15.4, 21.4, 30.4, 36.4])
        return figure.get_supxlabel(), {each.points.get_linestyle() for each in found.values()}

    label, dashes = drawn(sign_flips, frame([*flip_cells(), *trained]), look)
    assert "bars: 95% interval over problems" in label and "open markers: random subsamples" in label
    assert len(dashes) == 4


def test_a_trained_model_stands_in_where_the_untrained_was_not_measured(frame):
    cells = [missing(row) if row.method == "none" else row for row in [*flip_cells(), *flip_cells("toy_b", "grpo", 8)]]
    look = lambda figure: [axes.get_title() for axes in figure.axes]  # noqa: E731
    assert drawn(sign_flips, frame(cells), look) == ["toy_b, GRPO, G = 8"]


def test_without_sampled_rates_no_open_marker_is_explained(frame):
    cells = [row for row in flip_cells() if row.measure.endswith("/exact")]
    look = lambda figure: (figure.get_supxlabel(), len(lines(figure.axes[0])))  # noqa: E731
    label, count = drawn(sign_flips, frame(cells), look)
    assert "open" not in label and count == 4


def test_injected_flips_are_shown_at_the_largest_g_from_rho_zero(frame):
    cells = [*accuracy_cells(("grpo", "mc-grpo"), (4, 8, 16)), *injected_cells((4, 8))]

    def look(figure):
        axes, sampled = figure.axes
        found = [*axes.containers, *sampled.containers]
        line = lines(axes)["greedy"].points
        np.testing.assert_allclose(line.get_xdata(orig=False), [0, 0.05, 0.1, 0.2, 0.4])
        # GRPO at G=8 has 50 + 2 * 8 percent at rho 0 (synthetic.accuracy_cells), then 60 - 50 rho.
        np.testing.assert_allclose(line.get_ydata(orig=False), [66, 57.5, 55, 50, 40])
        np.testing.assert_allclose(heights(lines(sampled)["sampled (avg@4)"]), [56, 47.5, 45, 40, 30])
        apart = [each.lines[0] for each in found if each.lines[0].get_linestyle() == "None"]
        assert {line.get_marker() for line in apart} == {"^"}
        assert sorted(line.get_ydata()[0] for line in apart) == pytest.approx([32, 42])
        return axes.get_ylabel(), figure.get_supxlabel().split("\n")

    name, label = drawn(injected_flips, frame(cells), look)
    assert name == "toy_a\nsums, G = 8"
    assert label[2:] == ["open triangles: a share ρ of each group flips", "bars: 95% interval over seeds and problems"]


def test_a_missing_rate_is_left_out_and_no_triangle_explained_without_exact_ones(frame):
    rows = [row for row in injected_cells((8,)) if "exact" not in row.variant and row.measure == "greedy"]
    cells = [missing(row) if row.variant == "flip-0.1" else row for row in rows]

    def look(figure):
        (axes,) = figure.axes
        return lines(axes)["greedy"].points.get_xdata().tolist(), figure.get_supxlabel()

    places, label = drawn(injected_flips, frame(cells), look)
    assert places == [0.05, 0.2, 0.4] and "triangles" not in label
