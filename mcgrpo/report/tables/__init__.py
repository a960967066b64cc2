"""A study's tables: `python -m mcgrpo.report.tables`."""
