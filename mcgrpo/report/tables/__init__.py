"""The tables of a study: `python -m mcgrpo.report.tables`."""
