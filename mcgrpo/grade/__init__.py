"""Grades of completions, and the rewards of training: `python -m mcgrpo.grade`."""
