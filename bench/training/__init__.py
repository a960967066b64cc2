"""Benchmark of an optimizer step: TRL's mean, our mean and our median, in one run."""
