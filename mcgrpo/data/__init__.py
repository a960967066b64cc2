"""Data sets and models: `python -m mcgrpo.data` makes or fetches a data set."""
