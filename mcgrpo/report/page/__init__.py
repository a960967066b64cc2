"""The HTML report of a study: `python -m mcgrpo.report.page`. Each module gives plain data for the template."""
