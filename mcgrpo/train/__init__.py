"""Run one training job: `python -m mcgrpo.train`."""
