"""The effect of each difference between the paper and its code in a study: the numbers of docs/paper-and-code.md.

    python workflow/scripts/paper_and_code.py results/reference

prints them; `make readme` writes those of the reference study into the page.
"""

import sys
from collections import Counter
from pathlib import Path

import pandas as pd

from mcgrpo.analyse.frames import accuracies, read_cells
from mcgrpo.report import wording
from mcgrpo.report.tables import flip_rates
from mcgrpo.study.methods import UNTRAINED, label
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.variants import DEFAULT

VARIANTS = ("released", "mixed-groups", "best-on-test", "composite", "fixed-rows")
"""Variants in the order of the page; the sweep of injected flips follows."""
SURE = "**Bold**: better or worse, as in the tables (corrected within each)."


def measured(summary: pd.DataFrame) -> str:
    """Markdown: the change by each variant, the gain of the median in it, and sign flips by convention.

    Args:
        summary: of `mcgrpo.analyse.frames.read_cells`; all of `VARIANTS` must have been run.
    """
    cells = accuracies(summary, "in", variant=None)
    order = [*VARIANTS, *sorted(name for name in cells.variant.unique() if name.startswith("flip-"))]
    if missing := [name for name in VARIANTS if cells[cells.variant == name]["change"].isna().all()]:
        raise SystemExit(f"the summary has no change by {', '.join(missing)}")
    cells = cells[cells.variant.isin([DEFAULT, *order])]
    place = cells.variant.map({name: place for place, name in enumerate(order)})
    cells = cells.assign(place=place).sort_values(["place", "num_generations", "method"], kind="stable")
    return "\n\n".join([changes(cells), gains(cells), sign_flips(summary)])


def changes(cells: pd.DataFrame) -> str:
    """A row for each variant, method and G: the change from the same cell at default."""
    rows = [
        {
            "Variant": one.variant,
            "Method": f"{label(one.method)}, G={one.num_generations}",
            "Change, greedy": told(beside.get("greedy"), "change"),
            "Change, sampled": told(beside.get("sampled"), "change"),
            "Seeds": f"{one.change_seeds}",
        }
        for one, beside in decodings(cells[cells.change.notna()])
    ]
    known = cells[cells.change_low.notna()]
    sure = known.change_verdict.isin(["better", "worse"]).sum()
    return (
        "### What each changes\n\n"
        f"Accuracy in points, paired by seed and problem with the same method and G at `default`; {problems(cells)}. "
        f"{SURE} So are {sure} of {len(known)}. Intervals are not corrected for their number.\n\n{table(rows)}"
    )


def gains(cells: pd.DataFrame) -> str:
    """A row for each variant and G: the gain of the median over the mean, there and at default."""
    same = ["setting", "benchmark", "method", "num_generations", "decoding"]
    default = {tuple(getattr(one, key) for key in same): one for one in cells[cells.variant == DEFAULT].itertuples()}
    rows = []
    for one, beside in decodings(cells[(cells.variant != DEFAULT) & cells.difference.notna()]):
        there = {how: default.get((one.setting, one.benchmark, one.method, one.num_generations, how)) for how in beside}
        first = next(iter(there.values()))
        rows.append(
            {
                "Variant": one.variant,
                "Method": f"{label(one.method)}, G={one.num_generations}",
                "Greedy": told(beside.get("greedy"), "difference"),
                "at default": told(there.get("greedy"), "difference"),
                "Sampled": told(beside.get("sampled"), "difference"),
                "at default ": told(there.get("sampled"), "difference"),
                "Seeds": f"{one.difference_seeds}; {first.difference_seeds if first else 0}",
            }
        )
    return (
        "### Does a variant change the gain of the median?\n\n"
        f"Gain of the median over the mean at the same G, in points; {problems(cells)}; seeds of the variant; of "
        f"default. {SURE}\n\n{table(rows)}"
    )


def sign_flips(summary: pd.DataFrame) -> str:
    """A row for each convention and k: the rates for the mean and the median of k and of k + 1."""
    flips = flip_rates.select(summary[summary.method == UNTRAINED])
    if flips.empty:
        raise SystemExit("the summary has no sign-flip rates of the untrained model")
    rows, found = [], Counter()
    for (oracle, convention, k), group in flips.groupby(["oracle", "convention", "k"]):
        by = {one.centre: one for one in group.itertuples()}
        found[apart(by["median-plus1"], by["mean"])] += 1
        rows.append(
            {"Oracle": oracle.removeprefix("oracle-"), "Zero": ZEROS[convention], "k": k}
            | {head: wording.printed(by[c].mean, by[c].low, by[c].high, "percent") for c, head in CENTRES.items()}
        )
    return (
        "### Sign flips, by convention\n\n"
        f"Of the untrained model, in percent of rollouts, exact over all subsets of k (+1); {wording.span(flips.n)} "
        "prompts, intervals over them. The median of k + 1 flips fewer signs than the mean of k in "
        f"{found['lower']} of {len(rows)} rows and more in {found['higher']}; in {found['not told apart']} their "
        f"intervals overlap.\n\n{table(rows)}"
    )


ZEROS = {"strict": "no flip", "zeros": "a sign"}
CENTRES = {
    "mean": "Mean of k",
    "median": "Median of k",
    "median-plus1": "Median of k + 1",
    "mean-plus1": "Mean of k + 1",
}


def apart(one, other) -> str:
    """How a rate compares with another if their intervals are disjoint."""
    return "lower" if one.high < other.low else "higher" if one.low > other.high else "not told apart"


def decodings(cells: pd.DataFrame):
    """For each setting, benchmark, variant, method and G: one row, and all its rows by decoding."""
    keys = ["setting", "benchmark", "variant", "method", "num_generations"]
    for _, group in cells.groupby(keys, sort=False):
        rows = {one.decoding: one for one in group.itertuples()}
        yield next(iter(rows.values())), rows


def told(cell, field: str) -> str:
    """A difference with its interval, bold if that excludes zero; "missing" if it was not measured."""
    if cell is None:
        return wording.MISSING
    text = wording.printed(*(getattr(cell, field + end) for end in ("", "_low", "_high")))
    return f"**{text}**" if getattr(cell, f"{field}_verdict") in ("better", "worse") else str(text)


def problems(cells: pd.DataFrame) -> str:
    """The number of problems."""
    return f"{wording.span(cells.n.dropna())} problems"


def table(rows: list[dict[str, str]]) -> str:
    """Rows as a Markdown table."""
    return pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True)


if __name__ == "__main__":
    print(measured(read_cells(ResultFiles(Path(sys.argv[1])))))
