"""What `bench.gpu` prints at its end: seconds of a step with vLLM, and their ratios."""

from collections.abc import Sequence

from bench.gpu.checks import Row

PART, SECONDS, RATIO, STARTED = "vllm", "seconds a step", "over TRL's mean", "seconds to start"
"""Of rows: the part, and the quantities that the table shows."""


def as_markdown(rows: Sequence[Row]) -> str:
    """The contenders with vLLM at each G, over all rounds; empty where none was timed."""
    found = {(row.case, row.quantity): row for row in rows if row.part == PART and "round" not in row.case}
    lines = []
    for (case, quantity), row in found.items():
        if quantity == SECONDS:
            ratio = found.get((case, RATIO), Row(PART))
            value = f"{ratio.value:.2f} ({ratio.note})" if ratio.note else ""
            lines.append(f"| {case} | {row.value:.3g} ({row.note}) | {value} |")
    if not lines:
        return ""
    engine = found.get(("engine", STARTED), Row(PART))
    return "\n".join([f"{engine.note}\n", f"| | {SECONDS} | {RATIO} |", "|---|---|---|", *lines])
