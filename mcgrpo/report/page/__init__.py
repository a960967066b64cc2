"""The HTML report of a study: `python -m mcgrpo.report.page`."""
