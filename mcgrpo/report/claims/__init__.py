"""Verdicts on claims: `python -m mcgrpo.report.claims`."""
