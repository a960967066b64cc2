"""Draw figures from the CSV files of the analysis, as STEM.pdf and STEM.png (the same bytes at every rerun).

    python -m mcgrpo.report.figures accuracy-greedy --summary summary.csv --output reports/figures/accuracy-greedy
    python -m mcgrpo.report.figures rewards --curves curves.csv --output reports/figures/rewards

The name is one of `mcgrpo.report.catalogue`, which gives its module. A figure without data has a message in its place.
"""

import sys
from importlib import import_module
from pathlib import Path

from matplotlib import pyplot as plt

from mcgrpo import command_line
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import Cell, CurvePoint, Gain, SignalPoint
from mcgrpo.report.catalogue import FIGURES, stages
from mcgrpo.report.figures import style
from mcgrpo.report.shown import select

SOURCES = {"summary": Cell, "gains": Gain, "curves": CurvePoint, "signal_curves": SignalPoint}
"""The data files of figures, and their records."""


def main(arguments: list[str] | None = None) -> None:
    """Draw one figure."""
    parser = command_line.parser("Draw one figure as PDF and PNG.")
    parser.add_argument("name", choices=FIGURES)
    parser.add_argument("--summary", help="summary.csv, one Cell a row")
    parser.add_argument("--gains", help="gains.csv, one Gain a row")
    parser.add_argument("--curves", help="curves.csv, one CurvePoint a row")
    parser.add_argument("--signal-curves", help="signal_curves.csv, one SignalPoint a row")
    parser.add_argument("--output", required=True, type=Path, help="path without a suffix")
    options = parser.parse_args(arguments)
    sources = FIGURES[options.name].sources
    for source in sources:
        if not getattr(options, source):
            parser.error(f"{options.name} is drawn from --{source.replace('_', '-')}")
    plt.switch_backend("agg")
    draw = import_module(stages(options.name)[1]).draw
    with style.styled():
        try:
            data = [read_frame(getattr(options, source), SOURCES[source]) for source in sources]
        except ValueError as error:
            raise SystemExit(f"error: {options.name}: {error}") from None
        try:
            shown = select(options.name, data)
        except ValueError as error:
            print(f"warning: {options.name}: {error}", file=sys.stderr)
            figure = style.message(f"{options.name}: {error}")
        else:
            figure = draw(shown)
        style.save(options.output, figure)
