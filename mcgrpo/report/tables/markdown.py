"""A table as Markdown; a difference that is better or worse is bold."""

import pandas as pd

from mcgrpo.report.tables.display import Display


def markdown(table: Display) -> str:
    """The table below its heading and caption."""
    texts = [[f"**{text}**" if tone else text for text, tone in row] for row in table.rows()]
    body = pd.DataFrame(texts, columns=list(table.headings)).to_markdown(index=False, disable_numparse=True)
    bold = any(entry.tone for line in table.lines for entry in line.entries)
    return f"## {table.name}\n\n{table.caption}{' Bold: better or worse.' if bold else ''}\n\n{body}"
