"""Completions of a model: `python -m mcgrpo.generate`."""
