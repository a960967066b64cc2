from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from synthetic import accuracy_cells, cell, drawn, flip_cells, heights, injected_cells, lines, missing, summary_frame

from mcgrpo.report.figures import flip_conventions, flip_example, injected_flips, sign_flips


@pytest.fixture
def frame(tmp_path):
    return partial(summary_frame, tmp_path)


def test_the_example_flips_under_the_mean_and_not_under_the_median():
    # Eight rewards: sum 3.2, middle two 0.3 and 0.4. Four of them: sum 2.2, middle two 0.4 and 0.5.
    small = flip_example.small_set()
    assert small == [0.5, 0.4, 0.3, 1.0]
    for name, whole, part in (("mean", 0.5 - 0.4, 0.5 - 0.55), ("median", 0.5 - 0.35, 0.5 - 0.45)):
        assert flip_example.advantage(flip_example.REWARDS, name) == pytest.approx(whole)
        assert flip_example.advantage(small, name) == pytest.approx(part)


def test_flips_of_the_example_are_counted_over_all_sets():
    # With 0.5: the mean flips where 1.0 comes with two others of a sum above 0.5: 1 + 4 + 2 + 1 of the 15 pairs.
    assert flip_example.count_flips("mean") == (8, 35)
    assert flip_example.count_flips("median") == (0, 35)


def test_panel_a_prints_the_numbers_of_the_example(frame):
    look = lambda figure: [text.get_text() for text in figure.axes[0].texts]  # noqa: E731
    texts = drawn(sign_flips, frame(flip_cells()), look)
    assert {"mean: +0.10", "mean: −0.05", "median: +0.15", "median: +0.05"} <= set(texts)
    assert any("35 sets of 4" in text and "mean 8, median 0" in text for text in texts)


def test_rates_are_those_of_the_untrained_model_against_the_oracles_mean(frame):
    trained = [cell("grpo", 8, 0.9, measure=row.measure, role="flips") for row in flip_cells()]

    def look(figure):
        assert [axes.get_title() for axes in figure.axes][1:] == ["(b) toy_a, untrained"]
        found = lines(figure.axes[1])
        # 0.3 / k, the median 6 points above, zeros 15 more (synthetic.flip_cells).
        np.testing.assert_allclose(heights(found["mean, strict"]), [15, 7.5, 3.75])
        np.testing.assert_allclose(heights(found["mean, zeros"]), [30, 22.5, 18.75])
        np.testing.assert_allclose(heights(found["median, zeros"]), [36, 28.5, 24.75])
        np.testing.assert_allclose(found["mean, strict"].bars[0][:, 1], [13.5, 16.5])
        sampled = [
            line for line in figure.axes[1].lines if line.get_linestyle() == "None" and line.get_marker() in "o*"
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
    assert drawn(sign_flips, frame(cells), look)[1:] == ["(b) toy_b, GRPO, G = 8"]


def test_without_sampled_rates_no_open_marker_is_explained(frame):
    cells = [row for row in flip_cells() if row.measure.endswith("/exact")]
    look = lambda figure: (figure.get_supxlabel(), len(lines(figure.axes[1])))  # noqa: E731
    label, count = drawn(sign_flips, frame(cells), look)
    assert "open" not in label and count == 4


ORACLES, NAMES = ("mean", "median"), ("strict", "zeros")


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


@pytest.mark.slow
def test_conventions_have_a_row_for_each_model_and_oracles_a_column(frame):
    cells = [*flip_cells(), *flip_cells(method="grpo", budget=8)]

    def look(figure):
        np.testing.assert_allclose(heights(lines(figure.axes[3])["median of k+1"]), [41, 33.5, 29.75])
        assert all(len(lines(axes)) == 4 for axes in figure.axes)
        return titles(figure), [axes.get_ylabel() for axes in figure.axes[::2]]

    panels, rows = drawn(flip_conventions, frame(cells), look)
    assert panels == [f"{name}, oracle: {oracle}" for name in NAMES for oracle in ORACLES] * 2
    assert rows == ["toy_a\nuntrained"] * 2 + ["toy_a\nGRPO, G = 8"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("models", [1, 4])
def test_rare_strict_flips_fill_their_panels(frame, models):
    """Each convention has a scale of its own, whatever those that count zeros come to; its two oracles share one."""

    def rare(row):
        fewer = {name: getattr(row, name) / 100 for name in ("mean", "low", "high")}
        return replace(row, **fewer) if "/strict/" in row.measure else row

    def look(figure):
        for axes in figure.axes:
            high = max(bar[:, 1].max() for line in lines(axes).values() for bar in line.bars)
            assert high <= axes.get_ylim()[1] < 1.6 * high and axes.get_ylim()[0] == 0
        first = [axes.get_ylim() for axes in figure.axes[:4]]
        assert first[0] == first[1] and first[2] == first[3]
        return titles(figure), figure.get_figheight()

    cells = [row for place in range(models) for row in flip_cells(f"toy_{place}")]
    panels, height = drawn(flip_conventions, frame(map(rare, cells)), look)
    assert panels == [f"{name}, oracle: {oracle}" for name in NAMES for oracle in ORACLES] * models
    assert height <= 9


def test_a_convention_without_a_flip_says_so(frame):
    none = [replace(row, mean=0.0, low=0.0, high=0.0) if "/strict/" in row.measure else row for row in flip_cells()]
    look = lambda figure: [[text.get_text() for text in axes.texts] for axes in figure.axes]  # noqa: E731
    assert drawn(flip_conventions, frame(none), look) == [["0 at every k"], ["0 at every k"], [], []]


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
