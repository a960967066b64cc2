"""summary.csv and curves.csv to figures, each as STEM.pdf and STEM.png (the same bytes at every rerun).

    python -m mcgrpo.report.figures accuracy-greedy --summary summary.csv --output reports/figures/accuracy-greedy
    python -m mcgrpo.report.figures rewards --curves curves.csv --output reports/figures/rewards
    python -m mcgrpo.report.figures overview --output reports/figures/overview

NAME is a key of `FIGURES`; a module each, whose `draw` says what the figure shows and when there is nothing to show.
With --unfinished such a figure says so, in place of an error.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib import pyplot as plt

from mcgrpo.frames import read_frame
from mcgrpo.records import Cell, CurvePoint
from mcgrpo.report.figures import (
    accuracy,
    accuracy_first,
    composite,
    flip_conventions,
    injected_flips,
    latency,
    overview,
    rewards,
    sign_flips,
    style,
    variants,
)

SOURCES = {"summary": Cell, "curves": CurvePoint}
"""The files that figures are drawn from, and their records."""

FIGURES: dict[str, tuple[str | None, Callable]] = {
    "overview": (None, overview.draw),
    "accuracy-first": ("summary", accuracy_first.draw),
    "accuracy-greedy": ("summary", partial(accuracy.draw, role="in", decodings=("greedy",))),
    "accuracy-sampled": ("summary", partial(accuracy.draw, role="in", decodings=("sampled",))),
    "ood": ("summary", partial(accuracy.draw, role="out", decodings=("sampled", "greedy"))),
    "rewards": ("curves", rewards.draw),
    "latency": ("curves", latency.draw),
    "sign-flips": ("summary", sign_flips.draw),
    "sign-flip-conventions": ("summary", flip_conventions.draw),
    "injected-flips": ("summary", injected_flips.draw),
    "composite": ("summary", composite.draw),
    "variants": ("summary", variants.draw),
}
"""By name: the file it is drawn from (None: it needs no data), and the function that draws it."""


def main(arguments: list[str] | None = None) -> None:
    """Draw one figure."""
    parser = argparse.ArgumentParser(prog="figures", description="Draw one figure as PDF and PNG.")
    parser.add_argument("name", choices=FIGURES)
    parser.add_argument("--summary", help="summary.csv, one Cell a row")
    parser.add_argument("--curves", help="curves.csv, one CurvePoint a row")
    parser.add_argument("--output", required=True, type=Path, help="path without a suffix")
    parser.add_argument("--unfinished", action="store_true", help="the study goes on: a figure may be empty yet")
    options = parser.parse_args(arguments)
    source, draw = FIGURES[options.name]
    if source and not getattr(options, source):
        parser.error(f"{options.name} is drawn from --{source}")
    plt.switch_backend("agg")
    save = partial(style.save, options.output)
    try:
        data = [read_frame(getattr(options, source), SOURCES[source])] if source else []
    except ValueError as error:
        raise SystemExit(f"figures: {options.name}: {error}") from None
    try:
        draw(*data, save=save)
    except ValueError as error:
        if not options.unfinished:
            raise SystemExit(f"figures: {options.name}: {error}") from None
        style.say(f"{options.name}: {error}", save)
