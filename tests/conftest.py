"""What all tests share: one torch thread, no hub, hypothesis without deadlines (shared machines are slow at times)."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.pop("MLFLOW_TRACKING_URI", None)

from hypothesis import settings

settings.register_profile("project", deadline=None)
settings.load_profile("project")
