"""Sign-flip rates under every oracle and convention: how much the answer depends on what is counted."""

import pandas as pd

from mcgrpo.methods import UNTRAINED
from mcgrpo.report import wording
from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block, flip_rates
from mcgrpo.report.figures.sign_flips import draw_rates, notes

EXTRA = {"marker": "s", "markersize": 3.5, "linestyle": ":"}
LOOKS = {
    "mean": style.CENTRES[False],
    "mean-plus1": EXTRA | {"color": style.PALETTE[9]},
    "median": style.CENTRES[True],
    "median-plus1": EXTRA | {"marker": "D", "color": style.PALETTE[3], "linestyle": "-."},
}
NAMES = {"mean-plus1": "mean of k+1", "median-plus1": "median of k+1", "mean": "mean of k", "median": "median of k"}


def draw(summary: pd.DataFrame, save: style.Save) -> None:
    """The rate against k: a row for each model, a column for each oracle and convention, a line for each baseline.

    Args:
        summary: a row per `Cell`; the rates are those of role "flips".
        save: is given the finished figure.

    Raises:
        ValueError: where there is no such rate.
    """
    rates = flip_rates(summary)
    conventions = sorted(set(zip(rates.oracle, rates.convention, strict=True)))
    baselines = [name for name in LOOKS if name in set(rates.baseline)]
    sizes = sorted(rates.k.unique())
    blocks = sorted(set(zip(rates.setting, rates.benchmark, rates.source, strict=True)), key=_untrained_first)
    with style.panels(len(blocks), len(conventions), 1.55) as (figure, grid):
        for (*place, source), line in zip(blocks, grid, strict=True):
            own = block(rates[rates.source == source], *place)
            for (oracle, convention), axes in zip(conventions, line, strict=True):
                chosen = own[(own.oracle == oracle) & (own.convention == convention)]
                for number, baseline in enumerate(baselines):
                    offset = 0.08 * (number - (len(baselines) - 1) / 2) - 0.06
                    of = chosen[chosen.baseline == baseline]
                    draw_rates(axes, of, sizes, offset, look=LOOKS[baseline], name=NAMES[baseline])
                style.categories(axes, sizes)
            line[0].set_ylabel(f"{place[0]}\n{source}")
            line[0].set_ylim(bottom=0)
        for axes, (oracle, convention) in zip(grid[0], conventions, strict=True):
            axes.set_title(f"oracle: {oracle.removeprefix('oracle-')}\n{convention}")
        for axes in grid[:-1].flat:
            axes.tick_params(labelbottom=False)
        style.label(figure, ("k, rollouts whose signs are judged", *notes(rates)), "sign-flip rate (%)")
        style.legend(figure, 4)
        save(figure)


def _untrained_first(place: tuple[str, str, str]) -> tuple[str, str, bool, str]:
    setting, benchmark, source = place
    return setting, benchmark, source != wording.label(UNTRAINED), source
