"""The progress of a study: what is finished, what is running, and the time left, from its files alone."""
