"""Draw a figure from the CSV files of the analysis, as PDF and PNG (the same bytes at every rerun).

    python -m mcgrpo.report.figures rewards --results results/mini --output reports/mini/figures/rewards

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
from mcgrpo.study.paths import ResultFiles

SOURCES = {"summary": Cell, "gains": Gain, "curves": CurvePoint, "signal_curves": SignalPoint}
"""The data files of figures, and their records."""


def main(arguments: list[str] | None = None) -> None:
    """Draw one figure."""
    parser = command_line.parser("Draw one figure as PDF and PNG.")
    parser.add_argument("name", choices=FIGURES)
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY: summary.csv, curves.csv, ...")
    parser.add_argument("--output", required=True, type=Path, help="path without a suffix")
    options = parser.parse_args(arguments)
    plt.switch_backend("agg")
    files, chosen = ResultFiles(options.results), FIGURES[options.name]
    draw = getattr(import_module(stages(options.name)[1]), chosen.draw)
    with command_line.errors(ValueError), facets.styled():
        data = [read_frame(getattr(files, source), SOURCES[source]) for source in chosen.sources]
        try:
            figure = draw(*data, **chosen.options)
        except ValueError as error:
            print(f"warning: {options.name}: {error}", file=sys.stderr)
            figure = facets.message(f"{options.name}: {error}")
        facets.save(options.output, figure)


if __name__ == "__main__":
    main()
