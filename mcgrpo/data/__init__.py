"""Data sets and models: `python -m mcgrpo.data` creates or downloads a data set."""
