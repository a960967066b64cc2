"""Figures show the numbers of their files, leave out empty panels, and say what bars and n are."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from synthetic import (
    BOTH,
    accuracy_cells,
    cell,
    curves,
    drawn,
    flip_cells,
    gains_frame,
    heights,
    lines,
    missing,
    paired,
    point,
    signal_points,
    study,
)  # fmt: skip

from mcgrpo.report.catalogue import FIGURES
from mcgrpo.report.figures.__main__ import main

SOURCES = ("summary", "gains", "curves", "signal_curves")


def files_of(folder):
    return [part for name in SOURCES for part in (f"--{name.replace('_', '-')}", str(folder / f"{name}.csv"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_command_writes_the_same_bytes_again(tmp_path, frame, curve_frame, signal_frame, name):
    cells = [paired(each) for each in study(("toy_a",))]
    frame(cells), gains_frame(tmp_path, cells)
    signal_frame(signal_points()), curve_frame(curves(("toy_a",), BOTH, steps=3))
    for folder in "ab":
        main([name, *files_of(tmp_path), "--output", str(tmp_path / folder / name)])
    for suffix, magic in (("pdf", b"%PDF"), ("png", b"\x89PNG")):
        first, second = ((tmp_path / folder / f"{name}.{suffix}").read_bytes() for folder in "ab")
        assert first == second and first.startswith(magic)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_with_nothing_to_show_says_so(tmp_path, capsys, frame, curve_frame, signal_frame, name):
    where = (
        {},
        {"role": "out"},
        {"role": "flips", "measure": "mean/oracle-mean/strict/k2/exact"},
        {"variant": "flip-0.1"},
    )
    frame([cell("grpo", 2, None, **each) for each in where]), gains_frame(tmp_path, []), signal_frame([])
    curve_frame([point("grpo", 2, 0, 1, seconds=[None] * 4, reward=None, accuracy=None)])
    main([name, *files_of(tmp_path), "--output", str(tmp_path / "figure")])
    assert capsys.readouterr().err.startswith(f"warning: {name}: nothing to show: no ")
    assert (tmp_path / "figure.png").is_file()


def test_a_source_that_is_not_named_or_not_there_ends_in_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["rewards", "--summary", "summary.csv", "--output", str(tmp_path / "figure")])
    assert "rewards is drawn from --curves" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"error: .*none.csv: no such file"):
        main(["rewards", "--curves", "none.csv", "--output", str(tmp_path / "figure")])


@pytest.mark.slow
def test_it_imports_no_training_library():
    code = "import json, sys, mcgrpo.report.figures.__main__; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"torch", "transformers", "trl", "datasets", "mlflow"} & set(json.loads(output))


def test_accuracy_draws_means_and_intervals_and_a_missing_cell_as_a_gap(frame):
    cells = [cell("grpo", 2, 0.5, half=0.03), cell("grpo", 4, 0.6, half=None, seeds=1), cell("mc-grpo", 2, 0.55)]
    cells += [cell("mc-grpo", 4, None), cell("grpo-plus1", 2, 0.99), cell("none", 0, 0.45, seeds=1)]

    def look(figure):
        (axes,) = figure.axes
        mean, median = lines(axes)["mean-centred"], lines(axes)["median-centred"]
        np.testing.assert_allclose(heights(mean), [50, 60])
        np.testing.assert_allclose(heights(median), [55, np.nan])
        np.testing.assert_allclose([bar[:, 1] for bar in mean.bars], [[47, 53]])  # none at one seed of no problems
        return [text.get_text() for text in axes.texts], axes.get_ylabel(), figure.get_supxlabel().split("\n")

    notes, name, below = drawn("accuracy-greedy", frame(cells), look=look)
    assert (notes, name) == (["untrained 45.0"], "toy_a\nsums")
    assert below[1:] == [
        "bars: 95% interval over seeds and problems",
        "100 problems on sums; 5 seeds planned, 0 to 5 there",
    ]


def test_panels_without_data_are_left_out(frame):
    cells = [*accuracy_cells(BOTH), cell("mc-dapo", 2, 0.5, setting="toy_b", benchmark="long_name")]
    look = lambda figure: [(axes.get_ylabel(), axes.get_title()) for axes in figure.axes]  # noqa: E731
    assert drawn("accuracy-greedy", frame(cells), look=look) == [("toy_a\nsums", "GRPO"), ("toy_b\nlong_name", "DAPO")]


@pytest.mark.parametrize(("seeds", "over"), [((5, 5), "seeds and problems"), ((1, 1), "problems"), ((5, 1), "seeds and problems, or problems")])  # fmt: skip  # noqa: E501
def test_the_axis_says_what_bars_are_over(frame, seeds, over):
    cells = [cell("grpo", g, 0.5, seeds=n) for g, n in zip((2, 4), seeds, strict=True)]
    label = drawn("accuracy-greedy", frame(cells), look=lambda figure: figure.get_supxlabel().split("\n")[1])
    assert label == f"bars: 95% interval over {over}"


def test_gains_show_the_mean_every_seed_the_margin_and_the_papers_gain(frame, tmp_path):
    """Four seeds 2 to 4 points ahead and one 8 behind: a mean of half a point."""
    cells = [paired(cell("mc-grpo", 2, 0.5), 0.005, -0.064, 0.055, published_difference=0.03), cell("grpo", 2, 0.5)]
    gains = gains_frame(tmp_path, cells)
    gains["gain"] = [0.014, 0.021, 0.030, 0.044, -0.079]

    def look(figure):
        (axes,) = figure.axes
        (mean,) = axes.containers
        np.testing.assert_allclose(mean.lines[2][0].get_segments()[0][:, 1], [-6.4, 5.5])
        by_label = {line.get_label(): line.get_ydata() for line in axes.lines}
        (band,) = [patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches]
        np.testing.assert_allclose([band.y0, band.y1], [-1, 1])
        return axes.get_title(), [round(y, 6) for y in by_label["single seeds"]], by_label["the paper's gain"]

    title, seeds, crosses = drawn("gains-greedy", frame(cells), gains, look=look)
    assert (title, seeds, list(crosses)) == ("over GRPO", [1.4, 2.1, 3.0, 4.4, -7.9], [3.0])


def test_sign_flip_rates_are_those_of_the_untrained_model_against_the_oracles_mean(frame):
    trained = [cell("grpo", 8, 0.9, measure=row.measure, role="flips") for row in flip_cells()]

    def look(figure):
        found = lines(figure.axes[0])
        # 0.3 / k, the median 6 points above, zeros 15 more (synthetic.flip_cells).
        np.testing.assert_allclose(heights(found["mean, strict"]), [15, 7.5, 3.75])
        np.testing.assert_allclose(heights(found["median, zeros"]), [36, 28.5, 24.75])
        return [axes.get_title() for axes in figure.axes]

    assert drawn("sign-flips", frame([*trained, *flip_cells()]), look=look) == ["toy_a, untrained"]
    rows = [missing(row) if row.method == "none" else row for row in [*flip_cells(), *flip_cells("toy_b", "grpo", 8)]]
    assert drawn("sign-flips", frame(rows), look=lambda f: f.axes[0].get_title()) == "toy_b, GRPO, G=8"


def test_rewards_are_smoothed_over_the_window_that_is_stated(curve_frame):
    noise = (-0.02, 0.0, 0.02)
    points = [
        point("grpo", 2, seed, step, reward=0.05 * step + noise[seed]) for seed in range(3) for step in range(1, 21)
    ]

    def look(figure):
        band = figure.axes[0].collections[0].get_datalim(figure.axes[0].transData)
        assert band.y0 == pytest.approx(0.075 - 4.302653 * 0.02 / np.sqrt(3), rel=1e-5)
        return figure.axes[0].lines[0].get_ydata(), figure.get_supxlabel()

    values, label = drawn("rewards", curve_frame(points), look=look)
    assert label == "step (rolling mean over 3, band: 95% interval over seeds)\n3 runs, 3 seeds a cell"
    np.testing.assert_allclose(values[1:-1], 0.05 * np.arange(2, 20))  # a centred mean of three leaves the line


def test_budget_counts_the_seconds_of_steps_that_draw_nothing(curve_frame):
    """As with several updates on the same rollouts."""
    points = [point("grpo", 2, 0, step, (float(step % 2), 0.0, 0.0, 3.0)) for step in (1, 2, 3)]
    points[1] = replace(points[1], rollouts=None, accuracy=None)
    found = drawn(
        "budget", curve_frame(points), look=lambda figure: [axes.lines[0].get_xdata() for axes in figure.axes]
    )
    np.testing.assert_allclose(found, [[1, 3], [16, 32], [4, 11]])  # steps, rollouts drawn, seconds
