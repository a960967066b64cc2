import numpy as np
import pytest
from synthetic import accuracy_cells, cell, drawn, gains_frame, missing, paired

from mcgrpo.report.figures import gains


def frames(frame, folder, cells, **options):
    cells = list(cells)
    return frame(cells), gains_frame(folder, cells, **options)


def points(axes, label):
    """Places and heights of all lines of this label."""
    own = [line for line in axes.lines if line.get_label() == label]
    return [(line.get_xdata().tolist(), line.get_ydata().round(6).tolist()) for line in own]


def test_means_have_bars_seeds_are_points_beside_them_and_the_margin_is_a_band(frame, tmp_path):
    cells = [paired(cell("mc-grpo", 2, 0.5)), missing(cell("mc-grpo", 4, 0.5)), cell("grpo", 2, 0.5)]

    def look(figure):
        (axes,) = figure.axes
        (mean,) = axes.containers
        bar = mean.lines[2][0].get_segments()[0]
        np.testing.assert_allclose(mean.lines[0].get_ydata(orig=False), [2])
        np.testing.assert_allclose(bar[:, 1], [-1, 5])
        ((places, seeds),) = points(axes, "single seeds")
        assert seeds == [0, 1, 2, 3, 4] and len(set(places)) == 1 and 0 < places[0] < 0.3
        (band,) = [patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches]
        np.testing.assert_allclose([band.y0, band.y1], [-1, 1])
        zero = [line for line in axes.lines if list(line.get_ydata()) == [0, 0]]
        return len(zero), axes.get_title(), axes.get_ylabel(), figure.get_supylabel()

    found = drawn(gains, frames(frame, tmp_path, cells), look, decoding="greedy")
    assert found == (1, "over GRPO", "toy_a\nsums", "gain (points), greedy")


def test_one_seed_that_collapses_is_seen_whatever_the_mean_says(frame, tmp_path):
    """Four seeds 2 to 4 points ahead and one 8 behind: a mean of half a point."""
    cells = [paired(cell("mc-grpo", 2, 0.5), 0.005, -0.064, 0.055)]
    summary, each = frames(frame, tmp_path, cells)
    each["gain"] = [0.014, 0.021, 0.030, 0.044, -0.079]

    def look(figure):
        low, high = figure.axes[0].get_ylim()
        ((_, seeds),) = points(figure.axes[0], "single seeds")
        return seeds, low < -7.9 and high > 5.5, [text.get_text() for text in figure.legends[0].texts]

    seeds, all_within, legend = drawn(gains, (summary, each), look, decoding="greedy")
    assert seeds == [1.4, 2.1, 3.0, 4.4, -7.9] and all_within
    assert sorted(legend) == ["equivalent (±1 point)", "median-centred", "single seeds"]


def test_losses_have_a_column_with_the_control_beside_its_median_and_the_papers_gain_as_a_cross(frame, tmp_path):
    rows = [*accuracy_cells(budgets=(2, 4)), cell("grpo-plus1", 2, 0.5), cell("mc-grpo", 2, 0.5, setting="toy_b")]
    cells = [paired(row, published_difference=0.03 if row.method == "mc-dapo" else None) for row in rows]

    def look(figure):
        crosses = [bool(points(axes, "the paper's gain")) for axes in figure.axes]
        return [axes.get_title() for axes in figure.axes[:3]], [len(axes.containers) for axes in figure.axes], crosses

    titles, methods, crosses = drawn(gains, frames(frame, tmp_path, cells), look, decoding="greedy")
    assert titles == ["over GRPO", "over DAPO", "over DR-GRPO"]
    assert methods == [2, 1, 1, 1, 0, 0] and crosses == [False, True, False, False, False, False]


def test_a_study_without_a_pair_has_nothing_to_show(frame, tmp_path):
    with pytest.raises(ValueError, match="nothing to show: no paired gain in sampled accuracy"):
        drawn(gains, frames(frame, tmp_path, map(paired, [cell("mc-grpo", 2, 0.5)])), None, decoding="sampled")
