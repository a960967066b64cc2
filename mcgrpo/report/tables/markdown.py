"""A table as Markdown; a difference that is better or worse is bold."""

import pandas as pd

from mcgrpo.report.tables.display import Display, Entry


def markdown(table: Display) -> str:
    """The table below its heading and caption."""
    texts = [[_place(entry) for entry in row] for row in table.rows()]
    body = pd.DataFrame(texts, columns=list(table.headings)).to_markdown(index=False, disable_numparse=True)
    bold = any(entry.tone for line in table.lines for entry in line.entries)
    return f"## {table.name}\n\n{table.caption}{' Bold: better or worse.' if bold else ''}\n\n{body}"


def _place(entry: Entry) -> str:
    return f"**{entry.text}**" if entry.tone else entry.text
