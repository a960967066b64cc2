"""What this machine has and lacks for a study, looked at before anything starts."""
