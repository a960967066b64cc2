"""How far a study is, what runs, and when it will end: read from its files, wherever its jobs run."""
