"""summary.csv and curves.csv to figures, each as STEM.pdf and STEM.png (the same bytes at every rerun).

    python -m mcgrpo.report.figures accuracy-greedy --summary summary.csv --output reports/figures/accuracy-greedy
    python -m mcgrpo.report.figures rewards --curves curves.csv --output reports/figures/rewards

NAME is accuracy-greedy, accuracy-sampled (against G, in distribution), ood (the same, out of distribution, sampled
where there are samples), or rewards (over training).
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.files import atomic
from mcgrpo.frames import accuracies, is_median, read_frame
from mcgrpo.methods import METHODS, UNTRAINED
from mcgrpo.records import Cell, CurvePoint
from mcgrpo.stats import half_width
from mcgrpo.variants import DEFAULT

PALETTE = sns.color_palette("colorblind")
LOSSES = {method.loss_type: method.label for method in METHODS.values() if method.baseline is None}
CENTRES = {
    False: {"label": "mean-centred", "color": PALETTE[0], "marker": "o", "markersize": 4.5, "linestyle": "--"},
    True: {"label": "median-centred", "color": PALETTE[1], "marker": "*", "markersize": 8, "linestyle": "-"},
}
PANEL_WIDTH = 1.7
CONTROL = {"label": "GRPO+1", "color": "0.35", "linestyle": ":"}
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 8,
    "legend.columnspacing": 1.4,
    "legend.handlelength": 1.8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "grid.linewidth": 0.5,
    "pdf.fonttype": 42,
}


@contextmanager
def _panels(rows: int, columns: int, height: float) -> Iterator[tuple[Figure, np.ndarray]]:
    """A figure of rows x columns `Axes` (each `height` inches) that share y within a row; closed at the end."""
    with mpl.rc_context({**sns.axes_style("whitegrid"), **STYLE}):
        size = (max(PANEL_WIDTH * columns + 0.6, 3.5), height * rows + 0.9)
        figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey="row", layout="constrained")
        try:
            yield figure, axes
        finally:
            plt.close(figure)


def _errors(rows: pd.DataFrame) -> np.ndarray:
    """Percent below and above the mean, 2 x points; NaN (nothing drawn) at one seed."""
    return 100 * np.array([rows["mean"] - rows.low, rows.high - rows["mean"]])


def _accuracy_panel(axes: Axes, cells: pd.DataFrame, loss: str, budgets: list[int], untrained: pd.DataFrame) -> None:
    for median, look in CENTRES.items():
        methods = [m for m, spec in METHODS.items() if spec.loss_type == loss and is_median(m) == median]
        # The control of an extra rollout has a table of its own; the lines are the paper's six methods.
        methods = [m for m in methods if median or METHODS[m].baseline is None]
        rows = cells[cells.method.isin(methods)].set_index("num_generations").reindex(budgets)
        if rows["mean"].notna().any():
            places = np.arange(len(budgets)) + (0.09 if median else -0.09)
            look = look | {"markeredgecolor": "white", "markeredgewidth": 0.4, "linewidth": 1.2}
            axes.errorbar(places, 100 * rows["mean"], yerr=_errors(rows), capsize=2.5, elinewidth=1, **look)
    for value in untrained["mean"]:
        axes.axhline(100 * value, color="0.35", linestyle=":", linewidth=1.2, label="untrained")
    axes.set_xticks(range(len(budgets)), [str(g) for g in budgets])
    axes.set_xlim(-0.4, len(budgets) - 0.6)


def accuracy(summary: pd.DataFrame, role: str, decodings: tuple[str, ...], save: Callable[[Figure], None]) -> None:
    """Accuracy against G: a row of panels for each setting and benchmark, a column for each loss.

    Args:
        summary: a row per `Cell`.
        role: of the benchmarks to show, "in" or "out".
        decodings: the first of these that was evaluated is shown.
        save: is given the finished figure.

    Raises:
        ValueError: where no trained method has such an accuracy.
    """
    cells = accuracies(summary, role)
    decoding = next((d for d in decodings if ((cells.decoding == d) & (cells.method != UNTRAINED)).any()), None)
    if decoding is None:
        raise ValueError(
            f"nothing to show: no {' or '.join(decodings)} accuracy of a trained method on a benchmark of role "
            f"{role!r} (variant {DEFAULT})"
        )
    cells = cells[cells.decoding == decoding]
    trained = cells[cells.method != UNTRAINED]
    losses = [loss for loss in LOSSES if loss in set(trained.method.map(lambda m: METHODS[m].loss_type))]
    budgets = sorted(trained.num_generations.unique())
    blocks = sorted(set(zip(trained.setting, trained.benchmark, strict=True)))
    with _panels(len(blocks), len(losses), 1.45) as (figure, grid):
        for (setting, benchmark), line in zip(blocks, grid, strict=True):
            block = cells[(cells.setting == setting) & (cells.benchmark == benchmark)]
            for loss, axes in zip(losses, line, strict=True):
                _accuracy_panel(axes, block, loss, budgets, block[block.method == UNTRAINED])
            line[0].set_ylabel(f"{setting}\n{benchmark}")
        measures = "" if decoding == "greedy" else f" ({', '.join(sorted(trained.measure.unique()))})"
        figure.supylabel(f"accuracy (%), {decoding}{measures}", fontsize=STYLE["axes.labelsize"])
        _finish(
            figure, grid, [LOSSES[loss] for loss in losses], "G, rollouts in the update (bars: 95% interval over seeds)"
        )
        save(figure)


def rewards(curves: pd.DataFrame, save: Callable[[Figure], None]) -> None:
    """True mean reward over steps: a row of panels for each setting and loss, a column for each G, a line per method.

    Runs are smoothed by a centred rolling mean, whose window the x axis states; bands are 95% t intervals over seeds.

    Args:
        curves: a row per `CurvePoint`.
        save: is given the finished figure.

    Raises:
        ValueError: where no step of a run has a reward.
    """
    points = curves[(curves.variant == DEFAULT) & curves.reward.notna()]
    if points.empty:
        raise ValueError(f"nothing to show: no step has a reward (variant {DEFAULT})")
    window = 2 * (points.step.nunique() // 20) + 1
    smooth = _smooth(points, window)
    smooth["loss"] = smooth.method.map(lambda method: METHODS[method].loss_type)
    rows = sorted(
        set(zip(smooth.setting, smooth.loss, strict=True)), key=lambda row: (row[0], list(LOSSES).index(row[1]))
    )
    budgets = sorted(points.num_generations.unique())
    with _panels(len(rows), len(budgets), 1.5) as (figure, grid):
        for (setting, loss), line in zip(rows, grid, strict=True):
            own = smooth[(smooth.setting == setting) & (smooth.loss == loss)]
            for budget, axes in zip(budgets, line, strict=True):
                _reward_panel(axes, own[own.num_generations == budget])
            line[0].set_ylabel(f"{setting}\n{LOSSES[loss]}")
        figure.supylabel("mean reward of all rollouts", fontsize=STYLE["axes.labelsize"])
        rolling = f"rolling mean over {window}, " if window > 1 else ""
        _finish(figure, grid, [f"G = {budget}" for budget in budgets], f"step ({rolling}band: 95% interval over seeds)")
        save(figure)


def _smooth(points: pd.DataFrame, window: int) -> pd.DataFrame:
    """Mean over seeds of the smoothed reward, with the half-width of its interval: one row per cell and step."""
    cell = ["setting", "method", "num_generations"]
    points = points.sort_values([*cell, "seed", "step"])
    runs = points.groupby([*cell, "seed"]).reward
    points = points.assign(
        reward=runs.transform(lambda reward: reward.rolling(window, center=True, min_periods=1).mean())
    )
    means = points.groupby([*cell, "step"]).reward.agg(["mean", "sem", "count"]).reset_index()
    return means.assign(half=half_width(means["sem"], means["count"]))


def _reward_panel(axes: Axes, rows: pd.DataFrame) -> None:
    for method in [m for m in METHODS if m in set(rows.method)]:
        own = rows[rows.method == method]
        control = METHODS[method].baseline is not None and not is_median(method)
        style = CONTROL if control else {name: CENTRES[is_median(method)][name] for name in CONTROL}
        axes.plot(own.step, own["mean"], linewidth=1.2, **style)
        axes.fill_between(
            own.step, own["mean"] - own.half, own["mean"] + own.half, color=style["color"], alpha=0.15, lw=0
        )


def _finish(figure: Figure, grid: np.ndarray, titles: list[str], x_label: str) -> None:
    """Titles on top, tick labels below, one legend for all panels outside them."""
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title)
    for axes in grid[:-1].flat:
        axes.tick_params(labelbottom=False)
    figure.supxlabel(x_label, fontsize=STYLE["axes.labelsize"])
    entries = {}
    for axes in grid.flat:
        entries |= {text: handle for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    columns = min(len(entries), len(titles) + 1 if len(entries) > 3 else 3)
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=columns, frameon=False)


def _save(stem: Path, figure: Figure) -> None:
    for suffix, metadata in ((".pdf", {"CreationDate": None}), (".png", {})):
        with atomic(stem.with_name(stem.name + suffix)) as temporary:
            figure.savefig(temporary, format=suffix[1:], dpi=300, metadata=metadata)


FIGURES: dict[str, tuple[str, type, Callable]] = {
    "accuracy-greedy": ("summary", Cell, partial(accuracy, role="in", decodings=("greedy",))),
    "accuracy-sampled": ("summary", Cell, partial(accuracy, role="in", decodings=("sampled",))),
    "ood": ("summary", Cell, partial(accuracy, role="out", decodings=("sampled", "greedy"))),
    "rewards": ("curves", CurvePoint, rewards),
}
"""By name: the file it is drawn from, that file's records, and the function that draws it."""


def main(arguments: list[str] | None = None) -> None:
    """Draw one figure."""
    parser = argparse.ArgumentParser(description="Draw one figure as PDF and PNG.")
    parser.add_argument("name", choices=FIGURES)
    parser.add_argument("--summary", help="summary.csv (all but rewards)")
    parser.add_argument("--curves", help="curves.csv (rewards)")
    parser.add_argument("--output", required=True, type=Path, help="path without a suffix")
    options = parser.parse_args(arguments)
    source, kind, draw = FIGURES[options.name]
    if (path := getattr(options, source)) is None:
        parser.error(f"{options.name} is drawn from --{source}")
    plt.switch_backend("agg")
    try:
        draw(read_frame(path, kind), save=partial(_save, options.output))
    except ValueError as error:
        raise SystemExit(f"figures: {options.name}: {error}") from None


if __name__ == "__main__":
    main()
