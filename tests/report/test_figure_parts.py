import numpy as np
import pytest
from synthetic import (
    BOTH,
    accuracy_cells,
    cell,
    drawn,
    heights,
    lines,
    missing,
    point,
    study,
    variant_cells,
)

from mcgrpo.report.figures import composite, latency, variants


def bars(axes):
    """The width of each bar: by phase, then by method."""
    found = {}
    for container in axes.containers:
        found.setdefault(container.get_label(), []).extend(bar.get_width() for bar in container)
    return found


@pytest.fixture
def timed(frame, curve_frame):
    """Points -> the summary of their cells, where the median draws two more rollouts, and the curves."""

    def timed(points):
        cells = {(point.setting, point.method, point.num_generations) for point in points}
        trained = {"role": "train", "benchmark": "train", "measure": "seconds"}
        rows = (cell(m, g, 9.0, setting=s, extra_rollouts=2 * (m == "mc-grpo"), **trained) for s, m, g in sorted(cells))
        return frame(rows), curve_frame(points)

    return timed


def test_latency_is_the_mean_over_steps_then_seeds(timed):
    # Seed 0 has two steps of 1 and 3 s of generation, seed 1 one of 6 s: their means are 2 and 6, together 4 s.
    seconds = [(0, 1, 1.0), (0, 2, 3.0), (1, 1, 6.0)]
    points = [point("grpo", 4, seed, step, (first, 0.1, 0.9, 5.0)) for seed, step, first in seconds]
    points += [point("mc-grpo", 4, 0, 1, (5.0, 0.2, 1.0, 5.0))]

    def look(figure):
        (axes,) = figure.axes
        found = bars(axes)
        np.testing.assert_allclose(found["generation"], [4, 5])
        np.testing.assert_allclose(found["rewards"], [0.1, 0.2])
        np.testing.assert_allclose(found["update"], [5, 5])
        assert len({bar.get_hatch() for each in axes.containers for bar in each}) == 4
        return [text.get_text() for text in axes.texts], [label.get_text() for label in axes.get_yticklabels()]

    texts, names = drawn(latency, timed(points), look)
    assert texts[:5] == ["4 s, 40%", "0.1 s, 1%", "0.9 s, 9%", "5 s, 50%", "10 s"]
    assert names == ["GRPO\nG = 4", "MC-GRPO\nG = 4+2"]


@pytest.mark.parametrize(
    ("grpo", "median", "chosen"), [((2, 8), (2, 8), "2"), ((8, 16), (8, 16), "8"), ((2, 4), (2,), "2")]
)
def test_latency_takes_the_g_nearest_to_four_that_both_have(timed, grpo, median, chosen):
    points = [point(m, g, 0, 1) for m, budgets in zip(BOTH, (grpo, median), strict=True) for g in budgets]
    points += [point("grpo", 4, 0, 1, setting="toy_b")]  # no MC-GRPO: no panel
    look = lambda figure: [axes.get_yticklabels()[0].get_text() for axes in figure.axes]  # noqa: E731
    assert drawn(latency, timed(points), look) == [f"GRPO\nG = {chosen}"]


def test_a_phase_that_was_not_recorded_is_named(timed):
    points = [point(m, 4, 0, 1, (1.0, None, 0.5, 0.5)) for m in BOTH]

    def look(figure):
        texts = [text.get_text() for text in figure.axes[0].texts]
        return texts[:4], figure.get_supxlabel().split("\n")[1], [t.get_text() for t in figure.legends[0].texts]

    texts, note, legend = drawn(latency, timed(points), look)
    assert texts == ["1 s, 50%", "0.5 s, 25%", "0.5 s, 25%", "2 s"]
    assert note == "not recorded: rewards"
    assert legend == ["generation", "log-probabilities", "update"]


def test_short_steps_are_in_milliseconds(timed):
    look = lambda figure: ([text.get_text() for text in figure.axes[0].texts][:5], figure.get_supxlabel())  # noqa: E731
    points = [point(m, 4, 0, 1, (0.05, 0.0004, 0.0096, 0.14)) for m in BOTH]
    texts, label = drawn(latency, timed(points), look)
    assert texts == ["50 ms, 25%", "0.4 ms, 0.2%", "9.6 ms, 5%", "140 ms, 70%", "200 ms"]
    assert label.startswith("milliseconds per optimizer step")


@pytest.mark.parametrize("seconds", [(0.02, 0.01, 0.03, 9.94), (0.0554, 0.000344, 0.0164, 0.0419)])
def test_the_labels_of_short_bars_do_not_overlap(timed, seconds):
    points = [point(m, 4, 0, 1, seconds) for m in BOTH]

    def look(figure):
        axes = figure.axes[0]
        boxes = [text.get_window_extent() for text in axes.texts]
        return [(a, b) for place, a in enumerate(boxes) for b in boxes[:place] if a.overlaps(b)]

    assert not drawn(latency, timed(points), look)


def test_composite_stands_beside_the_default(frame):
    cells = [cell(m, g, 0.5 + 0.1 * (m == "mc-grpo") + 0.01 * g) for m in BOTH for g in (2, 4, 8)]
    cells += [cell(m, g, 0.4 + 0.1 * (m == "mc-grpo"), variant="composite") for m in BOTH for g in (2, 4)]
    cells[-1] = missing(cells[-1])  # composite, MC-GRPO at G=4

    def look(figure):
        default, with_format = (lines(axes) for axes in figure.axes)
        np.testing.assert_allclose(heights(default["GRPO"]), [52, 54])
        np.testing.assert_allclose(heights(default["MC-GRPO"]), [62, 64])
        np.testing.assert_allclose(heights(with_format["GRPO"]), [40, 40])
        np.testing.assert_allclose(heights(with_format["MC-GRPO"]), [50, np.nan])
        assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
        return [axes.get_title() for axes in figure.axes], figure.axes[0].get_ylabel()

    titles, name = drawn(composite, frame(cells), look)
    assert (titles, name) == (["accuracy reward", "composite reward"], "toy_a\nsums\ngreedy")


def test_composite_has_a_row_for_each_decoding(frame):
    cells = [*accuracy_cells(BOTH), *accuracy_cells(BOTH, variant="composite")]
    look = lambda figure: [axes.get_ylabel().split("\n")[-1] for axes in figure.axes[::2]]  # noqa: E731
    assert drawn(composite, frame(cells), look) == ["greedy", "sampled (avg@4)"]


def test_variants_show_the_change_and_leave_those_with_a_figure_of_their_own(frame):
    def look(figure):
        titles = [axes.get_title(loc="left") for axes in figure.axes]
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        mean, median = (container.lines[0] for container in figure.axes[2].containers)
        bar = figure.axes[2].containers[0].lines[2][0].get_segments()[0]
        np.testing.assert_allclose(mean.get_xdata(orig=False), [-1, -1])
        np.testing.assert_allclose([*mean.get_ydata(orig=False), *median.get_ydata(orig=False)], [0, 1, 2, 3])
        np.testing.assert_allclose(bar[:, 0], [-2, 0.5])
        zero = [line for line in figure.axes[2].lines if list(line.get_xdata()) == [0, 0]]
        return titles, names, len(zero), figure.axes[2].get_xlabel()

    cells = [*study(("toy_a",)), *variant_cells(("released", "faulty"), benchmark="more")]
    cells = [row for row in cells if row.variant not in ("mixed-groups", "best-on-test")]
    cells = [row for row in cells if row.benchmark == "sums" or row.variant == "faulty"]
    titles, names, zero, label = drawn(variants, frame(cells), look)
    assert titles == ["faulty (toy_a, more)", "", "released (toy_a, sums)", ""]
    assert names == ["GRPO, G = 2", "GRPO, G = 4", "MC-GRPO, G = 2", "MC-GRPO, G = 4"]
    assert (zero, label) == (1, "change of greedy accuracy (points)")


@pytest.mark.parametrize(("seeds", "over"), [(5, "seeds and problems"), (1, "problems")])
def test_bars_of_a_change_are_over_what_its_cells_share(frame, seeds, over):
    look = lambda figure: figure.get_supxlabel()  # noqa: E731
    cells = [cell("grpo", 2, 0.5, variant="released", change=-0.01, seeds=seeds)]
    assert drawn(variants, frame(cells), look).endswith(f"bars: 95% interval over {over}")
