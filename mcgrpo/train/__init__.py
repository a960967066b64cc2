"""One training job: `python -m mcgrpo.train`."""
