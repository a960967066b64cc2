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
from mcgrpo.report.figures import facets

SOURCES = {"summary": Cell, "gains": Gain, "curves": CurvePoint, "signal_curves": SignalPoint}
"""The data files of figures, and their records."""


def main(arguments: list[str] | None = None) -> None:
    """Draw one figure."""
    parser = command_line.parser("Draw one figure as PDF and PNG.")
    parser.add_argument("name", choices=FIGURES)
    for source, kind in SOURCES.items():
        name = f"--{source.replace('_', '-')}"
        parser.add_argument(name, help=f"{source}.csv, one {kind.__name__} a row")
    parser.add_argument("--output", required=True, type=Path, help="path without a suffix")
    options = parser.parse_args(arguments)
    chosen = FIGURES[options.name]
    for source in chosen.sources:
        if not getattr(options, source):
            parser.error(f"{options.name} is drawn from --{source.replace('_', '-')}")
    plt.switch_backend("agg")
    draw = getattr(import_module(stages(options.name)[1]), chosen.draw)
    with command_line.errors(ValueError), facets.styled():
        data = [read_frame(getattr(options, source), SOURCES[source]) for source in chosen.sources]
        try:
            figure = draw(*data, **chosen.options)
        except ValueError as error:
            print(f"warning: {options.name}: {error}", file=sys.stderr)
            figure = facets.message(f"{options.name}: {error}")
        facets.save(options.output, figure)


if __name__ == "__main__":
    main()
