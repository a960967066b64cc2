"""The figures by name. Light, and apart from what draws them, so that a change of one redraws no other."""

from typing import Any, NamedTuple


class Figure(NamedTuple):
    """How a figure is drawn.

    Args:
        sources: of `summary`, `gains` and `curves` the files that it is drawn from, in the order of its arguments.
        module: of `mcgrpo.report.figures`, with a function `draw`.
        options: of that function.
    """

    sources: tuple[str, ...]
    module: str
    options: dict[str, Any] = {}  # noqa: RUF012


FIGURES = {
    "overview": Figure((), "overview"),
    "gains-sampled": Figure(("summary", "gains"), "gains", {"decoding": "sampled"}),
    "gains-greedy": Figure(("summary", "gains"), "gains", {"decoding": "greedy"}),
    "accuracy-first": Figure(("summary",), "accuracy_first"),
    "accuracy-greedy": Figure(("summary",), "accuracy", {"role": "in", "decodings": ("greedy",)}),
    "accuracy-sampled": Figure(("summary",), "accuracy", {"role": "in", "decodings": ("sampled",)}),
    "ood": Figure(("summary",), "accuracy", {"role": "out", "decodings": ("sampled", "greedy")}),
    "rewards": Figure(("curves",), "rewards"),
    "latency": Figure(("curves",), "latency"),
    "sign-flips": Figure(("summary",), "sign_flips"),
    "sign-flip-conventions": Figure(("summary",), "flip_conventions"),
    "injected-flips": Figure(("summary",), "injected_flips"),
    "composite": Figure(("summary",), "composite"),
    "variants": Figure(("summary",), "variants"),
}


def stages(name: str) -> tuple[str, str]:
    """The modules that draw a figure: the command, and its own."""
    return "mcgrpo.report.figures", f"mcgrpo.report.figures.{FIGURES[name].module}"
