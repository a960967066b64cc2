"""The files of a report: tables, claims, and figures by name. Apart from the code that draws figures, so that changing
one does not redraw the others.
"""

from typing import Any, NamedTuple

TABLES = ("tables.tex", "tables.md", "tables.csv", "headline.md", "timings.tex", "timings.md")
SIGNAL = ("signal.tex", "signal.md")
CLAIMS = ("claims.tex", "claims.md", "claims.csv")


class Figure(NamedTuple):
    """A function `draw` of a module of `mcgrpo.report.figures`, of these CSV files of the analysis, with options.

    It raises a ValueError if they have nothing to show.
    """

    module: str
    draw: str
    sources: tuple[str, ...] = ("summary",)
    options: dict[str, Any] = {}  # noqa: RUF012


FIGURES = {
    "gains-sampled": Figure("gains", "gains", ("summary", "gains"), {"decoding": "sampled"}),
    "gains-greedy": Figure("gains", "gains", ("summary", "gains"), {"decoding": "greedy"}),
    "accuracy-greedy": Figure("accuracy", "by_loss", options={"role": "in", "decodings": ("greedy",)}),
    "accuracy-sampled": Figure("accuracy", "by_loss", options={"role": "in", "decodings": ("sampled",)}),
    "ood": Figure("accuracy", "by_loss", options={"role": "out", "decodings": ("sampled", "greedy")}),
    "budget": Figure("curves", "budget", ("curves",)),
    "rewards": Figure("curves", "rewards", ("curves",)),
    "latency": Figure("latency", "latency", ("summary", "curves")),
    "sign-flips": Figure("flips", "sign_flips"),
    "signal": Figure("curves", "signal", ("signal_curves",)),
    "injected-flips": Figure("flips", "injected"),
    "variants": Figure("gains", "variants"),
}


def stages(name: str) -> tuple[str, str]:
    """The modules that a figure depends on: the command, and its own."""
    return "mcgrpo.report.figures", f"mcgrpo.report.figures.{FIGURES[name].module}"
