"""Benchmark of an optimizer step: TRL's trainer, the release's method, and ours, in one run."""
