r"""A table with its caption, and its three printed forms: LaTeX, Markdown, and rows for the HTML page."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from mcgrpo.files import write_text
from mcgrpo.report.wording import Printed

PREAMBLE = r"""% Needs \usepackage{booktabs,longtable,array} and \usepackage[table]{xcolor}.
\providecommand{\DefineTable}[2]{#2}
\providecommand{\Stacked}[2]{\begin{tabular}[t]{@{}c@{}}#1\\[-2pt]#2\end{tabular}}"""
r"""\DefineTable{name}{...} typesets a table in place, unless the document defines it first to store the tables.

\Stacked{number}{verdict} is one entry, the verdict below its number: beside it, tables are wider than a page.
"""
COLOURS = {"above": "green!45!black", "below": "red!75!black"}
SETTINGS = r"\begingroup\scriptsize\setlength{\tabcolsep}{3pt}\setlength{\LTcapwidth}{\linewidth}"
LATEX = {character: rf"\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "±": r"$\pm$",
    "×": r"$\times$", "ρ": r"$\rho$", "≥": r"$\geq$", "≤": r"$\leq$", ">": "$>$", "<": "$<$",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """One table.

    Args:
        name: in LaTeX labels and headings.
        caption: plain text, whose first words are the heading on the page.
        frame: texts and `Printed`s as they are printed, by heading.
        blocks: how many of the first columns are printed only where they change.
        cells: rows of the summary that it is made of, for tables.csv.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    blocks: int = 2
    cells: pd.DataFrame = field(default_factory=pd.DataFrame)

    def titled(self, title: str) -> "Table":
        """The table with a caption that starts with the title, if there is one."""
        return replace(self, caption=f"{title}. {self.caption}") if title else self

    @property
    def heading(self) -> str:
        """The words of the caption up to the first mark."""
        return re.split("[.:;?]", self.caption)[0]

    @property
    def sparse(self) -> pd.DataFrame:
        """The frame with blanks for what a block shares with the line above."""
        frame = self.frame.reset_index(drop=True).astype(object)
        blocks = frame.iloc[:, : self.blocks]
        starts = (blocks != blocks.shift()).cummax(axis=1)
        frame.iloc[:, : self.blocks] = blocks.where(starts, "")
        return frame

    @property
    def lines(self) -> list[list[tuple[Any, bool]]]:
        """The entries of each line, and whether the line above has the same."""
        full, sparse = (frame.itertuples(index=False, name=None) for frame in (self.frame, self.sparse))
        return [[(a, a != b) for a, b in zip(*pair, strict=True)] for pair in zip(full, sparse, strict=True)]


def markdown(table: Table) -> str:
    """The table below its heading and caption; what is better or worse is bold."""
    texts = table.sparse.map(lambda entry: f"**{entry}**" if getattr(entry, "tone", "") else str(entry))
    return f"## {table.name}\n\n{table.caption}\n\n{texts.to_markdown(index=False, disable_numparse=True)}"


def latex(table: Table, columns: str = "") -> str:
    r"""The table as \DefineTable: a longtable with a rule above each block; `columns` is its column format."""
    texts = table.sparse.map(_latex)
    new = (table.sparse.iloc[1:, : min(table.blocks, 2)] != "").any(axis=1) if table.blocks else len(texts) * [True]
    rule = r"\midrule " if table.blocks else r"\addlinespace "
    texts.iloc[1:, 0] = [rule * starts + text for starts, text in zip(new, texts.iloc[1:, 0], strict=False)]
    texts.columns = [escape_latex(heading) if columns else _stacked(heading) for heading in texts.columns]
    coloured = table.frame.map(lambda entry: bool(getattr(entry, "tone", ""))).any(axis=None)
    caption = escape_latex(table.caption + " Green: better or holds; red: worse or fails." * bool(coloured))
    rows = texts.style.hide(axis="index").to_latex(
        column_format=columns or "l" * (table.blocks + 1) + "c" * (len(texts.columns) - table.blocks - 1),
        hrules=True,
        environment="longtable",
        caption=caption,
        label=f"tab:{table.name}",
    )
    rows = rows.replace(rf"\caption[]{{{caption}}}", r"\caption[]{(continued)}")
    return f"\\DefineTable{{{table.name}}}{{{SETTINGS}\n{rows}\\endgroup}}"


def _latex(entry: Any) -> str:
    if not isinstance(entry, Printed):
        return escape_latex(str(entry))
    below = escape_latex(" ".join(filter(None, (entry.verdict, entry.note))))
    if not entry.value:
        text = " ".join(filter(None, (escape_latex(entry.interval), below)))
    else:
        text = escape_latex(entry.value) + (rf" {{\tiny {escape_latex(entry.interval)}}}" if entry.interval else "")
        text = rf"\Stacked{{{text}}}{{\tiny {below}}}" if below else text
    return rf"\textcolor{{{COLOURS[entry.tone]}}}{{{text}}}" if entry.tone else text


def _stacked(heading: str) -> str:
    """A heading on two lines, for narrow columns."""
    return r"\shortstack{" + escape_latex(heading).replace(" ", r"\\", 1) + "}"


def escape_latex(text: str) -> str:
    """Escape plain text for LaTeX."""
    return re.sub("|".join(map(re.escape, LATEX)), lambda found: LATEX[found[0]], text)


def write(found: Table | None, stem: Path, absent: str, title: str) -> None:
    """Write a table as STEM.tex and STEM.md, or what is said where the study has none."""
    titled = found and found.titled(title)
    write_text(stem.with_suffix(".tex"), f"{PREAMBLE}\n\n{latex(titled)}\n" if titled else f"% {absent}\n")
    write_text(stem.with_suffix(".md"), f"{markdown(titled)}\n" if titled else f"{absent}\n")
