"""Generate completions with a model: `python -m mcgrpo.generate`."""
