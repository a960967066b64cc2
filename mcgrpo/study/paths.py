"""Where the files of a study lie."""

LOCK = ".lock"
