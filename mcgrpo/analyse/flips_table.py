"""Sign-flip rates as a table to read: a row for each baseline and oracle, a column for each convention and k."""

from collections.abc import Sequence
from statistics import fmean

from mcgrpo.analyse.records import FlipRates


def table(rates: Sequence[FlipRates], sizes: Sequence[int]) -> str:
    """The exact rates, in percent, each a mean over problems."""
    means: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for row in rates:
        baseline, oracle, convention, k, how = row.measure.split("/")
        if how == "exact":
            means.setdefault((baseline, oracle), {})[convention, k] = 100 * fmean(row.values)
    columns = [(convention, f"k{k}") for convention in ("strict", "zeros") for k in sizes]
    lines = [f"{'':28}" + "".join(f"{f'{convention} {k}':>11}" for convention, k in columns)]
    for (baseline, oracle), row in means.items():
        lines.append(f"{baseline:14}{oracle:14}" + "".join(f"{row[column]:11.2f}" for column in columns))
    return "\n".join(lines)
