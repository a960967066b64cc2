"""Sign-flip rates by oracle and convention."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block
from mcgrpo.report.figures.sign_flips import draw_rates, notes
from mcgrpo.study.methods import UNTRAINED, label

EXTRA = {"marker": "s", "markersize": 3.5, "linestyle": ":"}
LOOKS = {
    "mean": style.CENTRES[False],
    "mean-plus1": EXTRA | {"color": style.PALETTE[9]},
    "median": style.CENTRES[True],
    "median-plus1": EXTRA | {"marker": "D", "color": style.PALETTE[3], "linestyle": "-."},
}
NAMES = {"mean-plus1": "mean of k+1", "median-plus1": "median of k+1", "mean": "mean of k", "median": "median of k"}
APART = 0.14
"""Between the lines of two baselines, of the 1 between two k."""
MODELS = 3
"""Of which each convention has a row; of more, conventions stand side by side, so that a page holds them."""


def draw(rates: pd.DataFrame) -> Figure:
    """The rate against k: panels for each model, convention and oracle, a line for each baseline.

    Each model and convention has its own scale: strict flips are often a hundredth of those that count zeros.
    """
    oracles, conventions = sorted(rates.oracle.unique()), sorted(rates.convention.unique())
    sizes = sorted(rates.k.unique())
    models = sorted(set(zip(rates.setting, rates.benchmark, rates.source, strict=True)), key=_untrained_first)
    rows = len(conventions) if len(models) <= MODELS else 1
    shape = (len(models) * rows, len(oracles) * len(conventions) // rows)
    figure, grid = style.panels(*shape, 1.45, sharey=False)
    panels = grid.reshape(len(models), len(conventions), len(oracles))
    for (*place, source), of_model in zip(models, panels, strict=True):
        own = block(rates[rates.source == source], *place)
        for convention, line in zip(conventions, of_model, strict=True):
            _line(line, own[own.convention == convention], oracles, sizes)
        for axes in of_model.reshape(rows, -1)[:, 0]:
            axes.set_ylabel(f"{place[0]}\n{source}")
    for axes in grid[:-1].flat:
        axes.tick_params(labelbottom=False)
    style.label(figure, 4, ("k, rollouts whose signs are judged", *notes(rates)), "sign-flip rate (%)")
    return figure


def _line(line: Sequence[Axes], rates: pd.DataFrame, oracles: list[str], sizes: list[int]) -> None:
    """The panels of a model and a convention: one for each oracle, on one scale."""
    for axes in line[1:]:
        axes.sharey(line[0])
        axes.tick_params(labelleft=False)
    for axes, oracle in zip(line, oracles, strict=True):
        _panel(axes, rates[rates.oracle == oracle], sizes)
        axes.set_title(f"{rates.convention.iloc[0]}, oracle: {oracle.removeprefix('oracle-')}" if len(rates) else "")
    line[0].set_ylim(bottom=0, top=None if rates["mean"].any() else 1)


def _panel(axes: Axes, rates: pd.DataFrame, sizes: list[int]) -> None:
    baselines = [name for name in LOOKS if name in set(rates.baseline)]
    for number, baseline in enumerate(baselines):
        offset = APART * (number - (len(baselines) - 1) / 2) - 0.05
        own = rates[rates.baseline == baseline]
        draw_rates(axes, own, sizes, offset, LOOKS[baseline] | {"label": NAMES[baseline]}, beside=0.07)
    if len(rates) and not rates["mean"].any():
        axes.text(0.5, 0.5, "0 at every k", transform=axes.transAxes, **style.MIDDLE)
    style.categories(axes, sizes)


def _untrained_first(place: tuple[str, str, str]) -> tuple[str, str, bool, str]:
    setting, benchmark, source = place
    return setting, benchmark, source != label(UNTRAINED), source
