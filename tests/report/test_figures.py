import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from matplotlib.colors import same_color
from study_frames import cell_scores, curve_points, study, summary_of

from mcgrpo.files import write_csv
from mcgrpo.frames import read_frame
from mcgrpo.methods import METHODS
from mcgrpo.records import CurvePoint
from mcgrpo.report.figures import CENTRES, accuracy, main, rewards


@pytest.fixture
def summary(tmp_path):
    return summary_of(tmp_path, study())


def curves_of(folder, points):
    write_csv(folder / "curves.csv", CurvePoint, points)
    return read_frame(folder / "curves.csv", CurvePoint)


def drawn(draw, look):
    """What `look` sees in the figure, before it is closed."""
    seen = []
    draw(save=lambda figure: (figure.draw_without_rendering(), seen.append(look(figure))))
    return seen[0]


def bars(axes, centre):
    (container,) = [c for c in axes.containers if c.get_label() == CENTRES[centre]["label"]]
    points, _, (segments,) = container.lines
    return points, segments.get_segments()


def test_accuracy_draws_means_and_intervals_of_the_summary(summary):
    def look(figure):
        (axes,) = figure.axes
        stars, circles = bars(axes, True), bars(axes, False)
        assert (stars[0].get_marker(), circles[0].get_marker()) == ("*", "o")
        heights = [points.get_ydata(orig=False) for points in (stars[0], circles[0])]
        return *heights, circles[1], axes.get_title(), axes.get_ylabel()

    stars, circles, segments, title, label = drawn(partial(accuracy, summary, "in", ("sampled",)), look)
    # The median has no run at G=4: a gap, not a zero.
    np.testing.assert_allclose(stars, [45.0, np.nan])
    np.testing.assert_allclose(circles, [40.0, 40.0])
    np.testing.assert_allclose(segments[0][:, 1], 40 + np.array([-1, 1]) * 4.302653 * 2 / np.sqrt(3), rtol=1e-5)
    assert (title, label) == ("GRPO", "toy_a\nsums")


def test_the_untrained_model_is_a_dotted_line(summary):
    def look(figure):
        return [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_linestyle() == ":"]

    assert drawn(partial(accuracy, summary, "in", ("greedy",)), look) == [30.0]


def test_panels_are_losses_by_settings_and_benchmarks(tmp_path):
    rows = study() + cell_scores("mc-dapo", 2, 0.5, setting="toy_b", benchmark="long_name")
    look = lambda figure: [(axes.get_ylabel(), axes.get_title()) for axes in figure.axes]  # noqa: E731
    panels = drawn(partial(accuracy, summary_of(tmp_path, rows), "in", ("greedy",)), look)
    assert panels == [("toy_a\nsums", "GRPO"), ("", "DAPO"), ("toy_b\nlong_name", ""), ("", "")]


def legend_fits(figure):
    """Whether the legend is within the page and over no panel."""
    legend = figure.legends[0].get_window_extent()
    within = legend.x0 >= 0 and legend.x1 <= figure.bbox.x1 and legend.y1 <= figure.bbox.y1
    return within and not any(legend.overlaps(axes.get_tightbbox()) for axes in figure.axes)


@pytest.mark.parametrize("budgets", [(2,), (2, 4), (2, 4, 8)])
def test_the_legend_of_three_losses_fits(tmp_path, budgets):
    points = curve_points(METHODS, budgets, steps=3)
    look = lambda figure: (len(figure.axes), len(figure.legends[0].texts), legend_fits(figure))  # noqa: E731
    assert drawn(partial(rewards, curves_of(tmp_path, points)), look) == (3 * len(budgets), 3, True)


def test_the_legend_of_one_panel_fits(summary):
    assert drawn(partial(accuracy, summary, "in", ("greedy",)), legend_fits)


def test_rewards_are_smoothed_over_the_window_that_is_stated(tmp_path):
    def look(figure):
        assert [axes.get_title() for axes in figure.axes] == ["G = 2", "G = 4"]
        line = figure.axes[0].lines[0]
        band = figure.axes[0].collections[0].get_datalim(figure.axes[0].transData)
        return line.get_ydata(), figure.get_supxlabel(), band

    values, label, band = drawn(partial(rewards, curves_of(tmp_path, curve_points(steps=20))), look)
    assert "rolling mean over 3" in label
    # Rewards are 0.05 a step: a centred mean of three leaves the line, but for its ends.
    np.testing.assert_allclose(values[1:-1], 0.05 * np.arange(2, 20))
    np.testing.assert_allclose([values[0], values[-1]], [0.075, 0.975])
    assert band.y0 == pytest.approx(0.075 - 4.302653 * 0.02 / np.sqrt(3), rel=1e-5)


def test_a_loss_has_a_row_and_its_methods_differ_in_colour_and_dashes(tmp_path):
    points = curve_points(("grpo", "mc-grpo", "grpo-plus1", "dapo"), (2,), steps=3)
    look = lambda figure: [[(line.get_color(), line.get_linestyle()) for line in a.lines] for a in figure.axes]  # noqa: E731
    (grpo, median, control), (dapo,) = drawn(partial(rewards, curves_of(tmp_path, points)), look)
    assert (grpo[1], median[1], control[1]) == ("--", "-", ":")
    assert not any(same_color(a[0], b[0]) for a, b in ((grpo, median), (grpo, control), (median, control)))
    assert same_color(grpo[0], dapo[0]) and grpo[1] == dapo[1]


@pytest.mark.parametrize("name", ["accuracy-sampled", "rewards"])
def test_the_command_writes_the_same_bytes_again(tmp_path, summary, name):
    curves_of(tmp_path, curve_points(steps=3))
    arguments = ["--summary", str(tmp_path / "summary.csv"), "--curves", str(tmp_path / "curves.csv"), "--output"]
    main([name, *arguments, str(tmp_path / "a" / name)])
    main([name, *arguments, str(tmp_path / "b" / name)])
    for suffix in ("pdf", "png"):
        first, second = ((tmp_path / folder / f"{name}.{suffix}").read_bytes() for folder in "ab")
        assert first == second
    assert b"CreationDate" not in (tmp_path / "a" / f"{name}.pdf").read_bytes()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ood", "ood: nothing to show: no sampled or greedy accuracy of a trained method on a benchmark of role 'out'"),
        ("rewards", "rewards: nothing to show: no step has a reward"),
    ],
)
def test_a_figure_with_nothing_to_show_is_an_error(tmp_path, summary, name, message):
    curves_of(tmp_path, [])
    files = ["--summary", str(tmp_path / "summary.csv"), "--curves", str(tmp_path / "curves.csv")]
    with pytest.raises(SystemExit, match=message):
        main([name, *files, "--output", str(tmp_path / "figure")])
    assert not list(tmp_path.glob("figure*"))


def test_the_missing_source_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["rewards", "--summary", "summary.csv", "--output", str(tmp_path / "figure")])
    assert "rewards is drawn from --curves" in capsys.readouterr().err


def test_analysis_imports_no_training_library():
    stages = "mcgrpo.summarise, mcgrpo.report.tables, mcgrpo.report.figures"
    code = f"import json, sys, {stages}; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )
    assert not {"torch", "transformers", "trl", "datasets", "mlflow"} & set(modules)
