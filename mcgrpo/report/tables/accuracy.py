"""The accuracy tables: published numbers, ours with intervals, gains and changes, one line for each cell."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from mcgrpo.analyse.frames import DECODINGS, accuracies, is_among
from mcgrpo.analyse.records import ASKED_TOKENS, FIT_TOKENS
from mcgrpo.report import wording
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import METHODS, UNTRAINED, label, method_order
from mcgrpo.study.variants import COMPOSITE, DEFAULT, flips_of, is_rival

KEY = ["setting", "benchmark", "variant", "num_generations", "method"]


class Plan(NamedTuple):
    """The cells of one table: of some methods and variants, on benchmarks of a role.

    `only_where` limits it to the settings and G for which that method is planned (a control is not run everywhere).
    `changes` adds the paired change from the default variant, and the cells of that. `caveat` is printed if the table
    shows published numbers.
    """

    name: str
    caption: str
    methods: tuple[str, ...] = tuple(METHODS)
    role: str = "in"
    variants: Callable[[str], Any] = DEFAULT.__eq__
    only_where: str | None = None
    changes: bool = False
    caveat: str = ""


def is_other(variant: str) -> bool:
    """Whether a variant has no table of its own."""
    return variant not in (DEFAULT, COMPOSITE) and not flips_of(variant) and not is_rival(variant)


PAIRS = {"main": ("grpo", "mc-grpo"), "dapo": ("dapo", "mc-dapo"), "dr_grpo": ("dr-grpo", "mc-dr-grpo")}
PLANS = (
    *(Plan(name, f"{label(one)} with the mean and the median", (one, two)) for name, (one, two) in PAIRS.items()),
    Plan(
        "ood",
        "Out-of-distribution benchmarks",
        role="out",
        caveat="The paper names neither the model nor the decoding of its numbers here (they stand beside each model); "
        "its released code counts a problem as solved if any of four samples is right.",
    ),
    Plan(
        "composite",
        "Composite reward: accuracy and format",
        variants=COMPOSITE.__eq__,
        caveat="The paper's own caption says of its numbers here: “All numbers are placeholders and will be replaced "
        "with actual results.”",
    ),
    Plan(
        "control",
        "Is it the median or the extra rollout? GRPO+1 draws G+1 rollouts, keeps the mean and drops the rollout of "
        "the smallest absolute advantage; gains are over GRPO",
        ("grpo", "grpo-plus1", "mc-grpo"),
        only_where="grpo-plus1",
    ),
    Plan(
        "injected-flips",
        "Injected sign flips: the sign of each advantage is turned with probability ρ, or (exact) of that share of "
        "every group; ρ = 0 is the variant default",
        variants=flips_of,
        changes=True,
    ),
    Plan("variants", "What each variant of the study changes", variants=is_other, changes=True),
)


def table(plan: Plan, summary: pd.DataFrame) -> Table | None:
    """The table as it is printed; None if the study plans none of its cells."""
    cells = select(plan, summary)
    if cells.empty:
        return None
    decodings = [each for each in DECODINGS if each in set(cells.decoding)]
    published = not plan.changes and bool(cells.published.notna().any())
    lines = [
        dict(_line(plan, {cell.decoding: cell for cell in rows.itertuples()}, decodings, published))
        for _, rows in cells.groupby(KEY, sort=False)
    ]
    blocks = 3 if plan.changes else 2
    caption = f"{_caption(plan, cells, published)} {limits(summary, cells)}".strip()
    return Table(plan.name, caption, pd.DataFrame(lines), blocks, cells)


def select(plan: Plan, summary: pd.DataFrame) -> pd.DataFrame:
    """The table's cells, a row per `Cell` with its `decoding`, in the order in which they are printed.

    Order: setting and benchmark as in the summary, the untrained model, the default variant before the others (injected
    flips by rate), G descending, methods as in `METHODS`. Empty if the study plans none.
    """
    cells = accuracies(summary, plan.role, variant=None)
    cells = ordered(
        cells,
        setting=cells.setting.factorize()[0],
        benchmark=cells.benchmark.factorize()[0],
        trained=cells.method != UNTRAINED,
        variant=cells.variant.map(_variant_order),
        budget=-cells.num_generations,
        method=cells.method.map(method_order),
        decoding=cells.decoding.map(DECODINGS.index),
    )
    chosen = cells[cells.method.isin(plan.methods) & cells.variant.map(plan.variants).astype(bool)]
    if plan.only_where:
        chosen = chosen[is_among(chosen, chosen[chosen.method == plan.only_where], ["setting", "num_generations"])]
    beside = (cells.method == UNTRAINED) & is_among(cells, chosen, ["setting", "benchmark"])
    if plan.changes:
        beside |= is_among(cells, chosen, ["setting", "benchmark", "num_generations", "method"])
    return cells[cells.index.isin(chosen.index) | (beside & (cells.variant == DEFAULT))]


def ordered(rows: pd.DataFrame, **keys: Sequence) -> pd.DataFrame:
    """The rows sorted by these keys, the first before the others."""
    return rows.loc[pd.DataFrame(keys, index=rows.index).sort_values(list(keys), kind="stable").index]


def by_variant(cells: pd.DataFrame) -> pd.DataFrame:
    """A block for each variant, benchmark and G, the default variant first."""
    return ordered(
        cells,
        setting=cells.setting,
        other=cells.variant != DEFAULT,
        variant=cells.variant,
        benchmark=cells.benchmark,
        budget=cells.num_generations,
        method=cells.method.map(method_order),
    )


def _variant_order(variant: str) -> tuple:
    flips = flips_of(variant)
    return (variant != DEFAULT, flips is not None, *((flips.rule, flips.rate) if flips else ()), variant)


def variant_text(variant: str) -> str:
    """The name of a variant in tables: the rate of injected flips, or the variant's own name."""
    if flips := flips_of(variant):
        return f"ρ = {100 * flips.rate:g}%" + (", exact" if flips.rule == "exact" else "")
    return variant


def _line(plan: Plan, cells: dict[str, Any], decodings: list[str], published: bool) -> Iterator[tuple[str, Any]]:
    """Each heading with its entry, of one cell by decoding."""
    one = next(iter(cells.values()))
    yield from (("Setting", one.setting), ("Benchmark", one.benchmark))
    if plan.changes:
        yield "Variant", "" if one.method == UNTRAINED else variant_text(one.variant)
    yield from (("Method", label(one.method)), ("G", wording.rollouts(one.num_generations, one.extra_rollouts)))
    if published:
        yield from _published(next((cell for cell in cells.values() if pd.notna(cell.published)), None))
    for decoding in decodings:
        cell = cells.get(decoding)
        accuracy = wording.printed(cell.mean, cell.low, cell.high, "percent") if cell else ""
        yield f"{decoding.capitalize()} (%)", accuracy
        yield f"Gain, {decoding}", wording.gain(cell) if cell and pd.notna(cell.baseline) else ""
        if plan.changes:
            yield f"Change, {decoding}", wording.gain(cell, "change") if cell and cell.variant != DEFAULT else ""
    yield "Seeds", wording.seeds(one.seeds, one.planned)


def _published(cell: Any) -> Iterator[tuple[str, str]]:
    """The paper's number, ours minus it in points, and its gain and whether our interval excludes that."""
    there = cell is not None
    yield "Published (%)", wording.number(cell.published, "percent", 2) if there else ""
    yield "Ours − published", wording.number(cell.mean - cell.published, "points") if there else ""
    gain = there and pd.notna(cell.published_difference)
    text = wording.number(cell.published_difference, "points", 2) if gain else ""
    if gain and pd.notna(cell.difference_excludes_published):
        text += " excluded" if cell.difference_excludes_published else " not excluded"
    yield "Published gain", text


def _caption(plan: Plan, cells: pd.DataFrame, published: bool) -> str:
    change = "; change: that to the same cell of the variant default" if plan.changes else ""
    judged = cells.difference_verdict.notna().any() or cells.change_verdict.notna().any()
    untrained = (cells.method == UNTRAINED).any()
    paper = "Published: the paper's number and gain, and whether the interval of ours excludes that gain."
    parts = [
        f"{plan.caption}.",
        "" if cells.seeds.any() else "Nothing of this table has been run.",
        f"Accuracy in percent{wording.intervals(cells[cells.method != UNTRAINED])}; {wording.sizes(cells)}.",
        _samples(cells),
        f"Gain: paired difference in points to the mean-centred method at the same G{change}.",
        "Untrained: before this training, after the warm start of a model that has one." if untrained else "",
        f"{wording.about_verdicts(cells.equivalence_margin.max())} {wording.FAMILIES}" if judged else "",
        f"{paper} {plan.caveat}".strip() if published else "",
    ]
    return " ".join(filter(None, parts))


def _samples(cells: pd.DataFrame) -> str:
    sampled = cells[cells.decoding == "sampled"]
    numbers = [f"{name} on {benchmark}" for benchmark, name in sampled.groupby("benchmark").measure.first().items()]
    return f"Sampled: the mean accuracy of k samples of each problem, avg@k: {', '.join(numbers)}." if numbers else ""


def limits(summary: pd.DataFrame, cells: pd.DataFrame) -> str:
    """What a caption says of completions that are cut by the context of a model before the study's own limit."""
    place = ["setting", "benchmark"]
    tokens = summary[summary.measure.isin([FIT_TOKENS, ASKED_TOKENS]) & is_among(summary, cells, [*place, "role"])]
    tokens = tokens.pivot_table(index=place, columns="measure", values="mean", aggfunc="min", sort=False)
    if not {FIT_TOKENS, ASKED_TOKENS} <= set(tokens):
        return ""
    cut = [
        f"{setting} on {benchmark}: {row[FIT_TOKENS]:,.0f} of {row[ASKED_TOKENS]:,.0f} asked"
        for (setting, benchmark), row in tokens[tokens[FIT_TOKENS] < tokens[ASKED_TOKENS]].iterrows()
    ]
    return f"Completions were as long as the model's context leaves: {'; '.join(cut)} (tokens)." if cut else ""
