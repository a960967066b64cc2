"""A study: its file read, checked and expanded into runs."""
