"""Put the mini study's own sentences, tables and figure into README.md: `make readme`, after `make mini`."""

import re
import shutil
from pathlib import Path

import pandas as pd

from mcgrpo.frames import accuracies, read_frame
from mcgrpo.records import Cell
from mcgrpo.report import wording

REPORTS = Path("reports/mini")
SUMMARY = Path("results/mini/summary.csv")
FIGURE = Path("docs/mini-accuracy-sampled.png")
BLOCK = re.compile(r"(<!-- mini study: begin.*?-->\n).*?(<!-- mini study: end -->)", re.DOTALL)


def claims() -> str:
    """How many of the paper's claims hold by its own numbers and by the study's, from the caption of claims.md."""
    counts = re.search(r"By the paper's own numbers: .*", (REPORTS / "claims.md").read_text())
    if counts is None:
        raise SystemExit(f"{REPORTS}/claims.md does not say how many claims hold")
    return f"The paper's claims, each taken literally (`mcgrpo claims`). {counts[0]}"


def changes() -> str:
    """What every variant changes, sampled, against the same method and G at default."""
    cells = accuracies(read_frame(SUMMARY, Cell), "in", variant=None)
    cells = cells[(cells.decoding == "sampled") & cells.change_low.notna()]
    rows = [
        {
            "Variant": cell.variant,
            "Method": f"{wording.label(cell.method)}, G={cell.num_generations}",
            "Change of sampled accuracy": wording.interval(cell.change, cell.change_low, cell.change_high),
            "Seeds": cell.change_seeds,
        }
        for cell in cells.sort_values(["variant", "num_generations", "method"], kind="stable").itertuples()
    ]
    text = "What other rewards, injected sign flips, more updates and the release's faults change (`config/mini.yaml`):"
    return f"{text}\n\n{pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True)}"


def section(name: str) -> str:
    """The caption and table of one section of tables.md."""
    found = re.search(rf"^## {name}\n\n(.*?)(?=^## |\Z)", (REPORTS / "tables.md").read_text(), re.DOTALL | re.MULTILINE)
    if found is None:
        raise SystemExit(f"{REPORTS}/tables.md has no table {name!r}")
    return found.group(1).strip()


def main() -> None:
    """Rewrite what stands between the two marks."""
    readme = Path("README.md")
    shutil.copyfile(REPORTS / "figures/accuracy-sampled.png", FIGURE)
    parts = [
        (REPORTS / "headline.md").read_text().strip(),
        f"![Accuracy against G: mean- and median-centred, three losses]({FIGURE})",
        section("control"),
        changes(),
        claims(),
    ]
    text, count = BLOCK.subn(lambda marks: marks[1] + "\n" + "\n\n".join(parts) + "\n\n" + marks[2], readme.read_text())
    if count != 1:
        raise SystemExit("README.md has no place for the mini study")
    readme.write_text(text)


if __name__ == "__main__":
    main()
