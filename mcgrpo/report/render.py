"""A table's tidy rows (see `mcgrpo.report.tables.tidy`) as LaTeX and as Markdown."""

import pandas as pd

from mcgrpo.frames import DECODINGS, is_median
from mcgrpo.methods import METHODS, UNTRAINED
from mcgrpo.report import wording
from mcgrpo.stats import verdict

PREAMBLE = r"% Needs \usepackage{booktabs,adjustbox} and \usepackage[table]{xcolor}."
SHADE = "cellcolor:{black!8}--rwrap;"
COLOURS = {"above": "textcolor:{green!45!black}--rwrap;", "below": "textcolor:{red!75!black}--rwrap;"}
SYMBOLS = str.maketrans({"−": "$-$", "±": r"$\pm$"})
ROWS_PER_PAGE = 40
FLOAT = r"""\begin{table*}[tp]
\centering
\caption{%(caption)s}
\label{%(label)s}
\smallskip
\setlength{\tabcolsep}{4pt}
\begin{adjustbox}{max width=\linewidth}
%(tabular)s
\end{adjustbox}
\end{table*}"""


def _gain(row: pd.Series, decoding: str) -> tuple[float, float, float]:
    return tuple(row[f"{decoding}_{field}"] for field in ("difference", "difference_low", "difference_high"))


def _gain_text(row: pd.Series, decoding: str) -> str:
    if row.method == UNTRAINED or METHODS[row.method].baseline is None:
        return ""
    text = wording.gain(*_gain(row, decoding))
    pairs, seeds = row[f"{decoding}_difference_seeds"], row[f"{decoding}_seeds"]
    return f"{text} ({pairs:.0f} shared seeds)" if 0 < pairs < seeds else text


def _seeds_text(row: pd.Series, decodings: list[str]) -> str:
    counts = sorted({int(n) for d in decodings if pd.notna(n := row[f"{d}_seeds"])})
    return "/".join(map(str, counts)) or "0"


def shown_decodings(rows: pd.DataFrame) -> list[str]:
    """The decodings that any row has a number for."""
    return [decoding for decoding in DECODINGS if rows[f"{decoding}_mean"].notna().any()]


def display(rows: pd.DataFrame) -> pd.DataFrame:
    """The cells as text, one row for each of `rows`; setting and benchmark are named once in each block."""
    decodings = shown_decodings(rows)
    first = ~rows.duplicated(["setting", "benchmark"])
    columns = {
        "Setting": rows.setting.where(first, ""),
        "Benchmark": rows.benchmark.where(first, ""),
        "Method": rows.method.map(wording.label),
        "#Rollout (G)": [wording.rollouts(m, g) for m, g in zip(rows.method, rows.num_generations, strict=True)],
        "#Training samples": rows.num_generations.astype(str).where(rows.method != UNTRAINED, ""),
    }
    for decoding in decodings:
        pairs = zip(rows[f"{decoding}_mean"], rows[f"{decoding}_low"], strict=True)
        columns[f"{decoding.capitalize()} (%)"] = [wording.accuracy(*pair) for pair in pairs]
        columns[f"Gain, {decoding} (points)"] = rows.apply(_gain_text, axis=1, decoding=decoding)
    columns["Seeds"] = rows.apply(_seeds_text, axis=1, decodings=decodings)
    return pd.DataFrame(columns)


def caption(text: str, rows: pd.DataFrame, title: str) -> str:
    """What the table shows and what its numbers are taken over, as plain text."""
    decodings = shown_decodings(rows)
    trained = rows[rows.method != UNTRAINED]
    seeds = pd.concat([trained[f"{d}_seeds"] for d in decodings]).dropna()
    parts = [f"{title}." if title else "", f"{text}."]
    parts.append(
        f"Accuracy in percent: mean over {wording.span(seeds)} training seeds (the Seeds column) ± half-width of its "
        f"95% t interval; {_problems(rows, decodings)}."
    )
    if "sampled" in decodings:
        parts.append(f"Sampled is the mean accuracy of k samples a problem: {_samples(rows)}.")
    parts.append(
        "A gain is the difference to the mean-centred baseline at the same G, paired over shared seeds, with its own "
        "95% t interval; it is called indistinguishable where that interval holds zero."
    )
    return " ".join(filter(None, parts))


def _problems(rows: pd.DataFrame, decodings: list[str]) -> str:
    n = rows[[f"{d}_n" for d in decodings]].max(axis=1).groupby(rows.benchmark, sort=False).agg(["min", "max"])
    return ", ".join(f"{wording.span(row)} problems on {benchmark}" for benchmark, row in n.iterrows())


def _samples(rows: pd.DataFrame) -> str:
    blocks = rows.dropna(subset="sampled_measure").drop_duplicates(["benchmark", "sampled_measure"])
    if blocks.sampled_measure.nunique() == 1:
        return blocks.sampled_measure.iloc[0]
    return ", ".join(f"{row.sampled_measure} on {row.benchmark}" for row in blocks.itertuples())


def markdown(name: str, text: str, rows: pd.DataFrame, title: str) -> str:
    """The table below its heading and caption; a gain whose interval excludes zero is bold."""
    shown = display(rows)
    for decoding in shown_decodings(rows):
        sure = rows.apply(lambda row, d=decoding: verdict(*_gain(row, d)[1:]) in COLOURS, axis=1)
        column = f"Gain, {decoding} (points)"
        shown[column] = shown[column].where(~sure, "**" + shown[column] + "**")
    body = shown.to_markdown(index=False, disable_numparse=True)
    return f"## {name}\n\n{caption(text, rows, title)} Bold: the interval excludes zero.\n\n{body}"


def latex(name: str, text: str, rows: pd.DataFrame, title: str) -> str:
    """The table as one float, or one for each setting where it would not fit a page.

    Rows of a median are shaded; a gain is green where its interval is above zero and red where it is below.
    """
    settings = rows.setting.unique() if len(rows) > ROWS_PER_PAGE else [None]
    parts = [rows if setting is None else rows[rows.setting == setting].reset_index(drop=True) for setting in settings]
    floats = []
    for setting, part in zip(settings, parts, strict=True):
        label = f"tab:{name}" if setting is None else f"tab:{name}-{setting}"
        legend = wording.escape_latex(f"{caption(text, part, title)} Green: above zero; red: below. Shaded: median.")
        floats.append(FLOAT % {"caption": legend, "label": label, "tabular": _tabular(part)})
    return "\n\n".join(floats).translate(SYMBOLS)


def _tabular(rows: pd.DataFrame) -> str:
    shown = display(rows)
    style = shown.style.hide(axis="index").format(escape="latex").format_index(_stacked, axis="columns")
    style = style.apply(lambda _: _styles(rows, shown), axis=None)
    lines = style.to_latex(hrules=True, column_format="lll" + "c" * (shown.shape[1] - 3)).splitlines()
    body = lines.index(r"\midrule") + 1
    starts = rows.index[~rows.duplicated(["setting", "benchmark"])]
    for start in reversed(starts[1:]):
        lines.insert(body + start, r"\midrule")
    return "\n".join(lines).replace(" indistinguishable", r" {\scriptsize indistinguishable}")


def _stacked(heading: str) -> str:
    """A heading over two lines, so that columns are as narrow as their numbers."""
    return r"\shortstack{" + wording.escape_latex(heading).replace(" ", r"\\", 1) + "}"


def _styles(rows: pd.DataFrame, shown: pd.DataFrame) -> pd.DataFrame:
    styles = pd.DataFrame("", index=shown.index, columns=shown.columns)
    styles.loc[rows.method.map(is_median), "Method":] = SHADE
    for decoding in shown_decodings(rows):
        colour = rows.apply(lambda row, d=decoding: COLOURS.get(verdict(*_gain(row, d)[1:]), ""), axis=1)
        styles[f"Gain, {decoding} (points)"] += colour
    return styles
