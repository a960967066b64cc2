"""The figures of a report: `python -m mcgrpo.report.figures`."""
