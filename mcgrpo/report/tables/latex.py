r"""A table as LaTeX: one float, or several if it would not fit a page.

Each table is the second argument of \DefineTable{name}{...}, which typesets it in place, unless the document defines
\DefineTable first (to store the tables and place them itself).
"""

import re
from dataclasses import replace

from mcgrpo.report import wording
from mcgrpo.report.tables.display import Display, Entry, Line

PREAMBLE = r"""% Needs \usepackage{booktabs,adjustbox} and \usepackage[table]{xcolor}.
\providecommand{\DefineTable}[2]{#2}"""
LEGEND = "Green: better; red: worse."
SHADED = "Shaded: median."
ROWS_PER_PAGE = 40
COLOURS = {"above": "green!45!black", "below": "red!75!black"}
SMALL = re.compile(r"(\[[^\]]*\]|\([^)]*seeds?\)|\(no interval\))")
VERDICT = re.compile(rf"(?<=\] )(?:{'|'.join(wording.VERDICTS)})(?: \([^)]*\))?")
"""Behind an interval, with the brackets behind it."""
FLOAT = r"""\begin{table*}[!htbp]
\centering
\caption{%(caption)s}
\label{tab:%(name)s}
\smallskip
\small
\setlength{\tabcolsep}{4pt}
\begin{adjustbox}{max width=\linewidth}
\begin{tabular}{%(columns)s}
\toprule
%(headings)s \\
\midrule
%(body)s
\bottomrule
\end{tabular}
\end{adjustbox}
\end{table*}"""


def latex(table: Display, rows: int = ROWS_PER_PAGE) -> str:
    r"""The table as \DefineTable, with small intervals and remarks, and differences coloured by tone.

    The first of several floats has the label `tab:NAME`.
    """
    first, *others = table.parts(rows)
    floats = [_float(replace(first, name=table.name)), *map(_float, others)]
    return f"\\DefineTable{{{table.name}}}{{%\n" + "\n\n".join(floats) + "}"


def _float(table: Display) -> str:
    body = []
    for line, entries, starts in zip(table.lines, table.rows(), table.starts, strict=True):
        if body and starts.any():
            body.append(r"\midrule" if starts[: table.ruled].any() else r"\addlinespace")
        body.append(_line(line, entries))
    return FLOAT % {
        "caption": _caption(table),
        "name": table.name,
        "columns": "l" * (len(table.lines[0].block) + 1) + "c" * (len(table.lines[0].entries) - 1),
        "headings": " & ".join(map(_stacked, table.headings)),
        "body": "\n".join(body),
    }


def _caption(table: Display) -> str:
    """The caption as LaTeX, with the meaning of the colours that occur."""
    toned = any(entry.tone for line in table.lines for entry in line.entries)
    looks = [LEGEND] * toned + [SHADED] * any(line.shaded for line in table.lines)
    return wording.escape_latex(" ".join([table.caption, *looks]))


def _line(line: Line, entries: list[Entry]) -> str:
    shaded = [False] * len(line.block) + [line.shaded] * len(line.entries)
    return " & ".join(map(_entry, entries, shaded)) + r" \\"


def _entry(entry: Entry, shaded: bool) -> str:
    text = VERDICT.sub(r"{\\scriptsize \g<0>}", wording.escape_latex(entry.text))
    text = SMALL.sub(r"{\\scriptsize \1}", text)
    text = rf"\textcolor{{{COLOURS[entry.tone]}}}{{{text}}}" if entry.tone else text
    return rf"\cellcolor{{black!8}}{text}" if shaded else text


def _stacked(heading: str) -> str:
    """A heading on two lines, for narrow columns."""
    return r"\shortstack{" + wording.escape_latex(heading).replace(" ", r"\\", 1) + "}"
