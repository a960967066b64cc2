"""Which estimator and G leave the most signal for one's own model: `mcgrpo advise`."""
