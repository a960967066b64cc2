"""The files of a report, beside the figures and the page."""

TABLES = ("tables.tex", "tables.md", "tables.csv", "headline.md", "timings.tex", "timings.md")
SIGNAL = ("signal.tex", "signal.md")
CLAIMS = ("claims.tex", "claims.md", "claims.csv")
