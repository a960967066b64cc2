"""The paper's claims, each a comparison over cells, judged by the numbers it prints and by those of a study.

    mcgrpo claims [--summary summary.csv] [--output reports] [--title "Mini study (toy models)"]

prints the list, and with --output writes claims.md, claims.tex and claims.csv. Without a summary, the published numbers
alone are judged. The language of claims.yaml is workflow/schemas/claims.schema.yaml.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from mcgrpo.files import atomic, write_csv
from mcgrpo.frames import read_frame
from mcgrpo.published import as_cells, read_published
from mcgrpo.records import Cell
from mcgrpo.report.claim_language import (
    Claim,
    Comparison,
    Finding,
    Ruling,
    Source,
    Term,
    Verdict,
    bounds,
    describe,
    read_claims,
)
from mcgrpo.report.claim_tables import latex, listing, markdown

DIGITS = 9
"""Decimals that values are compared at: the difference of two printed numbers is exact at these."""
Place = tuple[str, str]
"""A setting and a benchmark."""
FIELDS = {
    "mean": ("mean", "low", "high", "seeds"),
    "difference": ("difference", "difference_low", "difference_high", "difference_seeds"),
    "change": ("change", "change_low", "change_high", "change_seeds"),
}


class Value(NamedTuple):
    """A number with its interval (NaN where it has none), the seeds behind it, and what the interval is over."""

    value: float
    low: float
    high: float
    seeds: int
    over: str


def judge(claims: Sequence[Claim], cells: pd.DataFrame, source: Source) -> list[Ruling]:
    """A ruling on each claim, by every setting that has all the cells of a comparison.

    A comparison holds where the 95% interval of its value lies between its bounds, fails where it lies outside, and
    is indistinguishable where it straddles one, or where ours has no interval; published numbers have none, so they
    are taken as they stand. Half-widths of several terms combine as the root of the sum of their squares, the cells
    taken as independent, which is too wide for cells that share seeds and problems.

    Args:
        claims: what `read_claims` gives.
        cells: one row per `Cell`.
        source: whose numbers the cells are.
    """
    return [_rule(claim, cells, source) for claim in claims]


def _rule(claim: Claim, cells: pd.DataFrame, source: Source) -> Ruling:
    if claim.unjudged:
        return Ruling(claim, source, "not judged")
    if claim.settings:
        cells = cells[cells.setting.isin(claim.settings)]
    by_comparison = [list(_findings(claim.id, comparison, cells, source)) for comparison in claim.comparisons]
    combine = _in_all if claim.quantifier == "all" else _in_some
    return Ruling(claim, source, combine(by_comparison), tuple(row for rows in by_comparison for row in rows))


def _findings(claim: str, comparison: Comparison, cells: pd.DataFrame, source: Source) -> Iterator[Finding]:
    """A finding for each setting and benchmark that has any of the terms; an empty one where none has."""
    columns = [_values(term, cells) for term in comparison.terms]
    places = sorted(set().union(*columns)) or [("", "")]
    for place in places:
        parts = [column.get(place) for column in columns]
        value = None if None in parts else combined(comparison, parts)
        yield _finding(claim, place, comparison, value, source)


def _finding(claim: str, where: Place, comparison: Comparison, value: Value | None, source: Source) -> Finding:
    named = (claim, source, *where, describe(comparison))
    told = (comparison.unit, bounds(comparison))
    if value is None:
        return Finding(*named, None, None, None, *told, None, "", "not measured")
    numbers = (None if math.isnan(number) else number for number in value[:3])
    seeds = None if source == "published" else value.seeds
    margin = round(min(value.value - comparison.low, comparison.high - value.value), DIGITS)
    return Finding(*named, *numbers, *told, seeds, value.over, verdict(comparison, value, source), margin)


def _values(term: Term, cells: pd.DataFrame) -> dict[Place, Value | None]:
    """The term's number in each (setting, benchmark) that plans it; None where it is not there."""
    chosen = (cells.method == term.method) & (cells.num_generations == term.num_generations)
    chosen &= (cells.variant == term.variant) & (cells.measure == term.measure)
    chosen &= (cells.benchmark == term.benchmark) if term.benchmark else (cells.role == term.where)
    if term.role:
        chosen &= cells.role == term.role
    value, low, high, seeds = FIELDS[term.field]
    return {
        (row["setting"], row["benchmark"]): _value([row[name] for name in (value, low, high, seeds)], row["over"])
        for row in cells[chosen].to_dict("records")
    }


def _value(numbers: Sequence[float | None], over: str | None) -> Value | None:
    value, low, high, seeds = (math.nan if pd.isna(number) else float(number) for number in numbers)
    if math.isnan(value):
        return None
    count = 0 if math.isnan(seeds) else int(seeds)
    over = "" if math.isnan(low) or pd.isna(over) else "problems" if count == 1 else over
    return Value(value, low, high, count, over)


def combined(comparison: Comparison, parts: Sequence[Value]) -> Value:
    """The comparison's value with its interval, in its unit; independent terms.

    Half-widths below and above are the root of the sum of squares of the terms' own (swapped for a negative weight);
    of a ratio, of its relative half-widths. `over` is "problems" as soon as one term's is.
    """
    if comparison.is_ratio:
        value, below, above = _ratio(*parts)
    else:
        value, below, above = _sum(parts, [term.weight for term in comparison.terms])
    scale = comparison.scale
    overs = sorted({part.over for part in parts})
    over = "problems" if "problems" in overs else "" if "" in overs else " / ".join(overs)
    numbers = (round(scale * number, DIGITS) for number in (value, value - below, value + above))
    return Value(*numbers, seeds=min(part.seeds for part in parts), over=over)


def _sum(parts: Sequence[Value], weights: Sequence[float]) -> tuple[float, float, float]:
    value, below, above = 0.0, [], []
    for part, weight in zip(parts, weights, strict=True):
        value += weight * part.value
        ends = (weight * (part.value - part.low), weight * (part.high - part.value))
        below.append(abs(ends[weight < 0]))
        above.append(abs(ends[weight > 0]))
    return value, math.hypot(*below), math.hypot(*above)


def _ratio(top: Value, bottom: Value) -> tuple[float, float, float]:
    value = top.value / bottom.value
    below = math.hypot(top.value - top.low, value * (bottom.high - bottom.value)) / bottom.value
    above = math.hypot(top.high - top.value, value * (bottom.value - bottom.low)) / bottom.value
    return value, below, above


def verdict(comparison: Comparison, value: Value, source: Source) -> Verdict:
    """Where the value's interval lies relative to the bounds; without one, only a published value is judged."""
    low, high = (value.value, value.value) if source == "published" else (value.low, value.high)
    if math.isnan(low) or math.isnan(high):
        return "indistinguishable"
    if _beyond(comparison.low, low, comparison.low_open) and _beyond(high, comparison.high, comparison.high_open):
        return "holds"
    reaches = _beyond(comparison.low, high, comparison.low_open) and _beyond(low, comparison.high, comparison.high_open)
    return "indistinguishable" if reaches else "fails"


def _beyond(a: float, b: float, is_open: bool) -> bool:
    return a < b if is_open else a <= b


def _in_all(by_comparison: Sequence[Sequence[Finding]]) -> Verdict:
    """Fails if any does; not measured if nowhere a comparison is; holds if all that is measured does."""
    verdicts = [[row.verdict for row in rows if row.verdict != "not measured"] for rows in by_comparison]
    return _all([each for some in verdicts for each in (some or ["not measured"])])


def _in_some(by_comparison: Sequence[Sequence[Finding]]) -> Verdict:
    """As the best of the settings: each holds if all of its findings do."""
    if not all(any(row.verdict != "not measured" for row in rows) for rows in by_comparison):
        return "not measured"
    rows = [row for each in by_comparison for row in each]
    verdicts = {_all([row.verdict for row in rows if row.setting == setting]) for setting in {r.setting for r in rows}}
    return next((each for each in ("holds", "indistinguishable", "fails") if each in verdicts), "not measured")


def _all(verdicts: Sequence[Verdict]) -> Verdict:
    return next((each for each in ("fails", "not measured", "indistinguishable") if each in verdicts), "holds")


def main(arguments: list[str] | None = None) -> None:
    """Judge the claims, write the files, print the list."""
    parser = argparse.ArgumentParser(description="Judge the paper's claims.")
    parser.add_argument("--claims", default="config/claims.yaml", help="the claims (default: %(default)s)")
    parser.add_argument(
        "--published", default="config/published.csv", help="the paper's numbers (default: %(default)s)"
    )
    parser.add_argument("--summary", help="summary.csv, one Cell a row; without it the published numbers alone")
    parser.add_argument("--output", type=Path, help="folder for claims.md, claims.tex and claims.csv")
    parser.add_argument("--title", default="", help="what the caption starts with, such as the study's name")
    options = parser.parse_args(arguments)
    try:
        claims = read_claims(options.claims)
        rulings = [judge(claims, as_cells(read_published(options.published)), "published")]
        if options.summary:
            rulings.append(judge(claims, read_frame(options.summary, Cell), "ours"))
    except ValueError as error:
        raise SystemExit(f"claims: {error}") from None
    if options.output:
        write_rulings(rulings, options.output, options.title)
    print(listing(rulings))


def write_rulings(rulings: Sequence[list[Ruling]], output: Path, title: str) -> None:
    """Write claims.csv, claims.md and claims.tex: the published numbers' rulings, and ours where there are any."""
    findings = [finding for each in rulings for ruling in each for finding in ruling.findings]
    write_csv(output / "claims.csv", Finding, findings)
    for name, text in (("md", markdown(rulings, title)), ("tex", latex(rulings, title))):
        with atomic(output / f"claims.{name}") as temporary:
            temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
