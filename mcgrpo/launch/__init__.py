"""How a job starts: its GPUs, its processes, its environment: `python -m mcgrpo.launch`."""
