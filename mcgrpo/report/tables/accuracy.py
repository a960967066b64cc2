"""The accuracy tables: published numbers, ours with intervals, gains, and captions."""

import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import DECODINGS, is_median
from mcgrpo.report import wording
from mcgrpo.report.tables.display import Display, Entry, Line, difference
from mcgrpo.report.tables.rows import Row, Table
from mcgrpo.study.methods import METHODS, UNTRAINED, label
from mcgrpo.study.variants import DEFAULT, flips_of


def display(table: Table, rows: list[Row], title: str) -> Display:
    """The table as it is printed; `rows` must not be empty."""
    decodings = [d for d in DECODINGS if any(d in row.cells for row in rows)]
    published = not table.changes and any(pd.notna(_published(row)) for row in rows)
    lines = tuple(
        Line(_block(table, row), tuple(_entries(table, row, decodings, published)), is_median(row.key.method))
        for row in rows
    )
    return Display(
        table.name, _caption(table, rows, title, published), tuple(_headings(table, decodings, published)), lines
    )


def _headings(table: Table, decodings: list[str], published: bool) -> Iterable[str]:
    yield from ("Setting", "Benchmark")
    if table.changes:
        yield "Variant"
    yield from ("Method", "#Rollout (G)")
    if not table.changes:
        yield "#Training samples"
    if published:
        yield "Published (%)"
    for decoding in decodings:
        yield f"{decoding.capitalize()} (%)"
        if published and decoding == decodings[0]:
            yield "Ours − published"
        yield f"Gain, {decoding}"
        if published and decoding == decodings[0]:
            yield "Published gain"
        if table.changes:
            yield f"Change, {decoding}"
    yield "Seeds"


def _block(table: Table, row: Row) -> tuple[str, ...]:
    if not table.changes:
        return (row.key.setting, row.key.benchmark)
    return (row.key.setting, row.key.benchmark, "" if row.key.method == UNTRAINED else variant_text(row.key.variant))


def variant_text(variant: str) -> str:
    """The name of a variant in tables: the rate of injected flips, or the variant's own name."""
    if flips := flips_of(variant):
        return f"ρ = {100 * flips.rate:g}%" + (", exact" if flips.rule == "exact" else "")
    return variant


def _entries(table: Table, row: Row, decodings: list[str], published: bool) -> Iterable[Entry]:
    yield Entry(label(row.key.method))
    yield Entry(wording.rollouts(row.key.method, row.key.num_generations))
    if not table.changes:
        yield Entry(str(row.key.num_generations) if row.key.method != UNTRAINED else "")
    if published:
        yield _paper(_published(row))
    for decoding in decodings:
        cell = row.cells.get(decoding)
        yield Entry(wording.accuracy(cell.mean, cell.low, cell.high) if cell else wording.MISSING)
        if published and decoding == decodings[0]:
            yield _against(cell)
        yield _gain(row.key.method, cell)
        if published and decoding == decodings[0]:
            yield _against_gain(row)
        if table.changes:
            yield _change(row, cell)
    yield Entry(_seeds(row))


def _published(row: Row) -> float | None:
    """The published number of a row, if any: the paper names no decoding, so any of ours may have it."""
    return next((cell.published for cell in row.cells.values() if pd.notna(cell.published)), None)


def _paper(value: float | None) -> Entry:
    """A published number as the paper prints it; blank if there is none."""
    return Entry("" if pd.isna(value) else wording.percent(value, 2))


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
    return Entry(wording.MISSING if pd.isna(cell.mean) else wording.points(cell.mean - cell.published))


def _gain(method: str, cell: Any) -> Entry:
    if cell is None:
        return Entry("" if method == UNTRAINED or METHODS[method].baseline is None else wording.MISSING)
    if pd.isna(cell.baseline):
        return Entry("")
    return _paired(cell, "difference")


def _change(row: Row, cell: Any) -> Entry:
    return Entry("") if row.key.variant == DEFAULT else _paired(cell, "change")


def _paired(cell: Any, field: str) -> Entry:
    if cell is None:
        return Entry(wording.MISSING)
    value, pairs = getattr(cell, field), getattr(cell, f"{field}_seeds")
    fewer = pd.notna(value) and pd.notna(pairs) and 0 < pairs < cell.seeds
    return difference(cell, field, f"({pairs} shared {'seed' if pairs == 1 else 'seeds'})" if fewer else "")


def _seeds(row: Row) -> str:
    texts = {wording.seeds(cell.seeds, cell.planned) for cell in row.cells.values()}
    return " and ".join(sorted(texts))


def _caption(table: Table, rows: list[Row], title: str, published: bool) -> str:
    cells = [cell for row in rows for cell in row.cells.values()]
    trained = [cell for cell in cells if cell.method != UNTRAINED]
    parts = [f"{title}." if title else "", f"{table.caption}."]
    parts.append("" if any(cell.seeds for cell in cells) else "Nothing of this table has been run.")
    parts.append(f"Accuracy in percent{intervals(trained)}; {problems(cells)}; {seeds(trained)}.")
    parts.append(_samples(cells))
    parts.append("Gain: paired difference in points to the mean-centred method at the same G")
    parts[-1] += "; change: that to the same cell of the variant default." if table.changes else "."
    if any(pd.notna(cell.difference_verdict) or pd.notna(cell.change_verdict) for cell in cells):
        margins = (cell.equivalence_margin for cell in cells if pd.notna(cell.equivalence_margin))
        parts.append(wording.about_verdicts(next(margins, None)))
    if published:
        parts.append(
            "Published: the paper's number and gain, and whether the interval of ours excludes that gain. "
            f"{table.caveat}"
        )
    return " ".join(part.strip() for part in parts if part)


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
    found: dict[str, list[int]] = {}
    for cell in cells:
        found.setdefault(cell.benchmark, []).extend([int(cell.n)] if pd.notna(cell.n) else [])
    texts = [f"{wording.span(n)} problems on {benchmark}" for benchmark, n in found.items() if n]
    return ", ".join(texts or ["no problem evaluated"])


def seeds(cells: list[Any]) -> str:
    """The planned seeds, and those finished: "5 seeds", "5 seeds planned, 0 to 3 there"."""
    planned, there = ([getattr(cell, name) for cell in cells] for name in ("planned", "seeds"))
    text = f"{wording.span(planned)} {'seed' if max(planned) == 1 else 'seeds'}"
    return text if planned == there else f"{text} planned, {wording.span(there)} there"


def _samples(cells: list[Any]) -> str:
    found = {cell.benchmark: re.sub(r"^avg@", "", cell.measure) for cell in cells if cell.decoding == "sampled"}
    if not found:
        return ""
    numbers = set(found.values())
    if len(numbers) == 1:
        k = numbers.pop()
    else:
        k = "k samples a problem: " + ", ".join(f"{k} on {benchmark}" for benchmark, k in found.items())
        return f"Sampled: the mean accuracy of {k}."
    return f"Sampled: the mean accuracy of {k} samples a problem (avg@{k})."
