"""A page for each claim, and answers to a reproducibility checklist: `mcgrpo logbook`."""
