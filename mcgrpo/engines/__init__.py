"""Adapters for training engines: one module for each, which imports that engine and `mcgrpo.estimators` only."""
