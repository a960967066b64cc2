"""Sign-flip rates as a table to read: a row for each baseline and oracle, a column for each convention and k."""

from collections.abc import Sequence
from statistics import fmean

from mcgrpo.analyse.flip_measures import CONVENTIONS, parse_measure
from mcgrpo.analyse.records import FlipRates


def table(rates: Sequence[FlipRates], sizes: Sequence[int]) -> str:
    """The exact rates, in percent, each a mean over problems."""
    means: dict[tuple[str, str], dict[tuple[str, int], float]] = {}
    for row in rates:
        measure = parse_measure(row.measure)
        if measure.how == "exact":
            line = means.setdefault((measure.baseline, measure.oracle), {})
            line[measure.convention, measure.k] = 100 * fmean(row.values)
    columns = [(convention, k) for convention in CONVENTIONS for k in sizes]
    lines = [f"{'':28}" + "".join(f"{f'{convention} k{k}':>11}" for convention, k in columns)]
    for (baseline, oracle), row in means.items():
        lines.append(f"{baseline:14}{oracle:14}" + "".join(f"{row[column]:11.2f}" for column in columns))
    return "\n".join(lines)
