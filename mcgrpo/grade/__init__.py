"""Grades of completions and rewards for training: `python -m mcgrpo.grade`."""
