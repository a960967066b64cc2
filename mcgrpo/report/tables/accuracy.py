"""The accuracy tables: published numbers, ours with intervals, gains, and captions."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import DECODINGS
from mcgrpo.report import wording
from mcgrpo.report.tables.display import Display, Entry, Line, difference
from mcgrpo.report.tables.rows import Row, Table
from mcgrpo.report.wording import MISSING
from mcgrpo.study.methods import METHODS, UNTRAINED, is_median, label
from mcgrpo.study.variants import DEFAULT, flips_of


def display(table: Table, rows: list[Row]) -> Display:
    """The table as it is printed; `rows` must not be empty."""
    decodings = [d for d in DECODINGS if any(d in row.cells for row in rows)]
    published = not table.changes and any(pd.notna(_published(row)) for row in rows)
    entries = [dict(_entries(table, row, decodings, published)) for row in rows]
    lines = tuple(
        Line(_block(table, row), tuple(own.values()), is_median(row.key.method))
        for row, own in zip(rows, entries, strict=True)
    )
    headings = ("Setting", "Benchmark", *(["Variant"] if table.changes else []), *entries[0])
    return Display(table.name, _caption(table, rows, published), headings, lines)


def _block(table: Table, row: Row) -> tuple[str, ...]:
    key = row.key
    variant = "" if key.method == UNTRAINED else variant_text(key.variant)
    return key.setting, key.benchmark, *([variant] if table.changes else [])


def variant_text(variant: str) -> str:
    """The name of a variant in tables: the rate of injected flips, or the variant's own name."""
    if flips := flips_of(variant):
        return f"ρ = {100 * flips.rate:g}%" + (", exact" if flips.rule == "exact" else "")
    return variant


def _entries(table: Table, row: Row, decodings: list[str], published: bool) -> Iterator[tuple[str, Entry]]:
    """Each heading with its entry."""
    method, budget = row.key.method, row.key.num_generations
    yield "Method", Entry(label(method))
    yield "#Rollout (G)", Entry(wording.rollouts(budget, next(iter(row.cells.values())).extra_rollouts))
    if not table.changes:
        yield "#Training samples", Entry("" if method == UNTRAINED else str(budget))
    if published:
        value = _published(row)
        yield "Published (%)", Entry("" if pd.isna(value) else wording.percent(value, 2))
    for decoding in decodings:
        cell = row.cells.get(decoding)
        beside = published and decoding == decodings[0]
        yield (
            f"{decoding.capitalize()} (%)",
            Entry(wording.accuracy(cell.mean, cell.low, cell.high) if cell else MISSING),
        )
        if beside:
            yield "Ours − published", _against(cell)
        yield f"Gain, {decoding}", _gain(method, cell)
        if beside:
            yield "Published gain", _against_gain(row)
        if table.changes:
            yield f"Change, {decoding}", Entry("") if row.key.variant == DEFAULT else _paired(cell, "change")
    seeds = {wording.seeds(cell.seeds, cell.planned) for cell in row.cells.values()}
    yield "Seeds", Entry(" and ".join(sorted(seeds)))


def _published(row: Row) -> float | None:
    """The published number of a row, if any: the paper names no decoding, so any of ours may have it."""
    return next((cell.published for cell in row.cells.values() if pd.notna(cell.published)), None)


def _against_gain(row: Row) -> Entry:
    """The paper's gain, and whether our interval excludes it; blank if the paper has none."""
    cell = next((cell for cell in row.cells.values() if pd.notna(cell.published_difference)), None)
    if cell is None:
        return Entry("")
    text, excluded = wording.points(cell.published_difference, 2), cell.difference_excludes_published
    return Entry(text if pd.isna(excluded) else f"{text} {'excluded' if excluded else 'not excluded'}")


def _against(cell: Any) -> Entry:
    """Our accuracy minus the paper's, in points; blank if the paper has none."""
    if cell is None or pd.isna(cell.published):
        return Entry("")
    return Entry(MISSING if pd.isna(cell.mean) else wording.points(cell.mean - cell.published))


def _gain(method: str, cell: Any) -> Entry:
    if cell is None:
        return Entry("" if method == UNTRAINED or METHODS[method].baseline is None else MISSING)
    return Entry("") if pd.isna(cell.baseline) else _paired(cell, "difference")


def _paired(cell: Any, field: str) -> Entry:
    return Entry(MISSING) if cell is None else difference(cell, field)


def _caption(table: Table, rows: list[Row], published: bool) -> str:
    cells = [cell for row in rows for cell in row.cells.values()]
    trained = [cell for cell in cells if cell.method != UNTRAINED]
    change = "; change: that to the same cell of the variant default" if table.changes else ""
    margins = [cell.equivalence_margin for cell in cells if pd.notna(cell.equivalence_margin)]
    judged = any(pd.notna(cell.difference_verdict) or pd.notna(cell.change_verdict) for cell in cells)
    paper = "Published: the paper's number and gain, and whether the interval of ours excludes that gain."
    parts = [
        f"{table.caption}.",
        "" if any(cell.seeds for cell in cells) else "Nothing of this table has been run.",
        f"Accuracy in percent{intervals(trained)}; {problems(cells)}; {seeds(trained)}.",
        _samples(cells),
        f"Gain: paired difference in points to the mean-centred method at the same G{change}.",
        wording.about_verdicts(margins[0] if margins else None) if judged else "",
        f"{paper} {table.caveat}".strip() if published else "",
    ]
    return " ".join(filter(None, parts))


def intervals(cells: list[Any]) -> str:
    """What the intervals of the cells are taken over, for a caption."""
    over = {cell.over for cell in cells if pd.notna(cell.over)}
    if not over:
        return ""
    if over == {"problems"}:
        return ", with its 95% interval over problems only: there is one seed"
    text = f", with its 95% interval over {sorted(over - {'problems'}, key=len)[-1]}"
    return f"{text} (over problems only where there is one seed)" if "problems" in over else text


def problems(cells: list[Any]) -> str:
    """The number of problems of each evaluated benchmark: "512 problems on two-step"."""
    sizes: dict[str, list[int]] = {}
    for cell in cells:
        sizes.setdefault(cell.benchmark, []).extend([int(cell.n)] if pd.notna(cell.n) else [])
    texts = [f"{wording.counts(n, 'problem')} on {benchmark}" for benchmark, n in sizes.items() if n]
    return ", ".join(texts or ["no problem evaluated"])


def seeds(cells: list[Any]) -> str:
    """The planned seeds, and those finished: "5 seeds", "5 seeds planned, 0 to 3 there"."""
    planned, there = ([getattr(cell, name) for cell in cells] for name in ("planned", "seeds"))
    text = wording.counts(planned, "seed")
    return text if planned == there else f"{text} planned, {wording.span(there)} there"


def _samples(cells: list[Any]) -> str:
    samples = {cell.benchmark: cell.measure.removeprefix("avg@") for cell in cells if cell.decoding == "sampled"}
    if not samples:
        return ""
    if len(set(samples.values())) == 1:
        k = next(iter(samples.values()))
        samples = "one sample" if k == "1" else f"the mean of {k} samples"
        return f"Sampled: the accuracy of {samples} of each problem (avg@{k})."
    numbers = ", ".join(f"{k} on {benchmark}" for benchmark, k in samples.items())
    return f"Sampled: the mean accuracy of k samples of each problem: {numbers}."
