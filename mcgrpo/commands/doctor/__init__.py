"""Check that this machine can run a study, before anything starts."""
