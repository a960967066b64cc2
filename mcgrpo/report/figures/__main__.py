"""Draw a figure from the CSV files of the analysis, as PDF and PNG (the same bytes at every rerun).

    python -m mcgrpo.report.figures rewards --results results/mini --output reports/mini/figures/rewards

A figure without data has a message in its place.
"""

import sys
from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from mcgrpo import command_line
from mcgrpo.analyse.frames import read_cells, read_frame
from mcgrpo.analyse.records import CurvePoint, SignalPoint
from mcgrpo.report.figures import accuracy, curves, facets, flips, samples
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import read_plan

SOURCES: dict[str, Callable[[ResultFiles], Any]] = {
    "summary": read_cells,
    "curves": lambda files: read_frame(files.curves, CurvePoint),
    "signal_curves": lambda files: read_frame(files.signal_curves, SignalPoint),
    "plan": lambda files: read_plan(files.plan),
}
"""What figures are drawn from: the frames of the CSV files, and the plan."""
FIGURES: dict[str, Callable[..., Figure]] = {
    "gains-sampled": partial(accuracy.gains, decoding="sampled"),
    "gains-greedy": partial(accuracy.gains, decoding="greedy"),
    "accuracy-greedy": partial(accuracy.by_loss, role="in", decodings=("greedy",)),
    "accuracy-sampled": partial(accuracy.by_loss, role="in", decodings=("sampled",)),
    "ood": partial(accuracy.by_loss, role="out", decodings=("sampled", "greedy")),
    "variants": accuracy.variants,
    "pass-at-k": samples.pass_at_k,
    "rates": samples.rates,
    "budget": curves.budget,
    "rewards": curves.rewards,
    "latency": curves.latency,
    "sign-flips": flips.sign_flips,
    "injected-flips": flips.injected,
    "signal": flips.signal,
}
"""The parameters of a function name its frames. It raises a ValueError if they have nothing to show."""


def main(arguments: list[str] | None = None) -> None:
    """Draw one figure."""
    parser = command_line.parser("Draw one figure as PDF and PNG.")
    parser.add_argument("name", choices=FIGURES)
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY: summary.csv, curves.csv, ...")
    parser.add_argument("--output", required=True, type=Path, help="path without a suffix")
    options = parser.parse_args(arguments)
    files, draw = ResultFiles(options.results), FIGURES[options.name]
    with command_line.errors(ValueError), rc_context(facets.STYLE):
        sources = SOURCES.keys() & signature(draw).parameters
        data = {name: SOURCES[name](files) for name in sources}
        try:
            figure = draw(**data)
        except ValueError as error:
            print(f"warning: {options.name}: {error}", file=sys.stderr)
            figure = facets.message(f"{options.name}: {error}")
        facets.save(options.output, figure)


if __name__ == "__main__":
    main()
