"""Seconds of an optimizer step: TRL's trainer, the release's way, and ours, side by side in one run."""
