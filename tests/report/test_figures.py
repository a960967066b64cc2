"""Figures show the numbers of their files, leave out empty panels, and say what bars and n are."""

from dataclasses import replace

import numpy as np
import pytest
from cells import cell
from golden import golden
from matplotlib import rc_context
from report_study import point, write_results

from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import CurvePoint
from mcgrpo.report.figures import __main__ as command
from mcgrpo.report.figures import facets
from mcgrpo.report.figures.curves import budget, rewards


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("results"))


def draw(name, results, output):
    command.main([name, "--results", str(results), "--output", str(output)])


def spelt(artist, points):
    label = artist.get_label() if artist.get_label()[:1] != "_" else ""
    return f"{label}: {' '.join(f'({x:.6g}, {y:.6g})' for x, y in np.round(np.asarray(points, float), 6) + 0.0)}"


def told(figure):
    """The texts of a figure, and the points of the lines, bars and bands of each panel."""
    yield from (f"below: {line}" for line in figure.get_supxlabel().split("\n"))
    yield f"side: {figure.get_supylabel()}"
    yield f"legend: {', '.join(text.get_text() for legend in figure.legends for text in legend.get_texts())}"
    for axes in figure.axes:
        yield f"panel: {axes.get_ylabel()!r}, {axes.get_title()!r} {[text.get_text() for text in axes.texts]}"
        for bars in (each for each in axes.containers if hasattr(each, "has_yerr")):
            bars.lines[0].set_label(bars.get_label())
        yield from (f"  line {spelt(line, line.get_xydata())}" for line in axes.lines if line.get_marker() not in "_|")
        for part in axes.collections:
            yield from (f"  bar {spelt(part, bar)}" for bar in getattr(part, "get_segments", list)() if len(bar))
            yield from (f"  band {spelt(part, path.vertices)}" for path in part.get_paths() if len(path.vertices) > 2)
        for patch in axes.patches:
            yield f"  patch {spelt(patch, axes.transData.inverted().transform(patch.get_extents().get_points()))}"


@pytest.mark.parametrize("name", command.FIGURES)
def test_what_a_figure_shows(name, results, tmp_path, monkeypatch):
    """Of the study of `report_study`: gaps for missing cells, no panel without data, and the n of all."""
    seen, save = [], facets.save
    monkeypatch.setattr(facets, "save", lambda stem, figure: (seen.extend(told(figure)), save(stem, figure)))
    draw(name, results, tmp_path / name)
    golden(f"figures/{name}.txt", "\n".join(seen) + "\n")


@pytest.mark.slow
def test_the_command_writes_the_same_bytes_again(results, tmp_path):
    for folder in "ab":
        draw("gains-sampled", results, tmp_path / folder)
    for suffix, magic in ((".pdf", b"%PDF"), (".png", b"\x89PNG")):
        first, second = ((tmp_path / folder).with_suffix(suffix).read_bytes() for folder in "ab")
        assert first == second and first.startswith(magic)


@pytest.mark.parametrize("name", command.FIGURES)
def test_a_figure_with_nothing_to_show_says_so(name, tmp_path, capsys):
    where = (
        {},
        {"role": "out"},
        {"role": "flips", "measure": "mean/oracle-mean/strict/k2"},
        {"variant": "flip-0.1"},
    )
    empty = point("grpo", 2, 0, 1, seconds=[None] * 4, reward=None, accuracy=None)
    draw(name, write_results(tmp_path, [cell("grpo", 2, None, **each) for each in where], [empty], []), tmp_path / name)
    assert capsys.readouterr().err.startswith(f"warning: {name}: nothing to show: no ")
    assert (tmp_path / f"{name}.png").is_file()


def test_a_file_that_is_not_there_ends_in_one_line(tmp_path):
    with pytest.raises(SystemExit, match=r"error: .*curves.csv: no such file"):
        draw("rewards", tmp_path, tmp_path / "figure")


def curve_frame(folder, points):
    return read_frame(write_results(folder, curve_points=points) / "curves.csv", CurvePoint)


def test_rewards_are_smoothed_over_the_window_that_is_stated(tmp_path):
    noise = (-0.02, 0.0, 0.02)
    points = [
        point("grpo", 2, seed, step, reward=0.05 * step + noise[seed]) for seed in range(3) for step in range(1, 21)
    ]
    with rc_context(facets.STYLE):
        figure = rewards(curve_frame(tmp_path, points))
        (axes,) = figure.axes
        band = axes.collections[0].get_datalim(axes.transData)
        values, label = axes.lines[0].get_ydata(), figure.get_supxlabel()
    assert band.y0 == pytest.approx(0.075 - 4.302653 * 0.02 / np.sqrt(3), rel=1e-5)
    assert label == "step (rolling mean over 3, band: 95% interval over seeds)\n3 runs, 3 seeds a cell"
    np.testing.assert_allclose(values[1:-1], 0.05 * np.arange(2, 20))  # a centred mean of three leaves the line


def test_budget_counts_the_seconds_of_steps_that_draw_nothing(tmp_path):
    """As with several updates on the same rollouts."""
    points = [point("grpo", 2, 0, step, (float(step % 2), 0.0, 0.0, 3.0)) for step in (1, 2, 3)]
    points[1] = replace(points[1], rollouts=None, accuracy=None)
    with rc_context(facets.STYLE):
        found = [axes.lines[0].get_xdata() for axes in budget(curve_frame(tmp_path, points)).axes]
    np.testing.assert_allclose(found, [[1, 3], [16, 32], [4, 11]])  # steps, rollouts drawn, seconds


def test_a_full_disk_is_one_line(results, small_disk):
    (small_disk / "filler").write_bytes(bytes(2 * 2**20))
    with pytest.raises(SystemExit, match=rf"^error: {small_disk}/rewards\.pdf: No space left on device$"):
        draw("rewards", results, small_disk / "rewards")
