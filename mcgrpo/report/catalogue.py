"""The files of a report: tables, claims, and figures by name, apart from the code that draws them, so that changing one
does not redraw the others.
"""

from typing import Any, NamedTuple

TABLES = ("tables.tex", "tables.md", "tables.csv", "headline.md", "timings.tex", "timings.md")
CLAIMS = ("claims.tex", "claims.md", "claims.csv")


class Figure(NamedTuple):
    """The module that draws a figure, and its arguments.

    Args:
        sources: which of `summary`, `gains`, `curves` and `signal_curves` it shows.
        module: in `mcgrpo.report.figures`, with a function `draw` of what the function of this name in
            `mcgrpo.report.shown` selects from the sources.
        options: further arguments of that function.
    """

    sources: tuple[str, ...]
    module: str
    options: dict[str, Any] = {}  # noqa: RUF012


FIGURES = {
    "gains-sampled": Figure(("summary", "gains"), "gains", {"decoding": "sampled"}),
    "gains-greedy": Figure(("summary", "gains"), "gains", {"decoding": "greedy"}),
    "accuracy-greedy": Figure(("summary",), "accuracy", {"role": "in", "decodings": ("greedy",)}),
    "accuracy-sampled": Figure(("summary",), "accuracy", {"role": "in", "decodings": ("sampled",)}),
    "ood": Figure(("summary",), "accuracy", {"role": "out", "decodings": ("sampled", "greedy")}),
    "budget": Figure(("curves",), "budget"),
    "rewards": Figure(("curves",), "rewards"),
    "latency": Figure(("summary", "curves"), "latency"),
    "sign-flips": Figure(("summary",), "sign_flips"),
    "signal": Figure(("signal_curves",), "signal"),
    "injected-flips": Figure(("summary",), "injected_flips"),
    "composite": Figure(("summary",), "composite"),
    "variants": Figure(("summary",), "variants"),
}


def stages(name: str) -> tuple[str, str]:
    """The modules that a figure depends on: the command, and its own."""
    return "mcgrpo.report.figures", f"mcgrpo.report.figures.{FIGURES[name].module}"
