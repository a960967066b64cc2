"""MLflow as a view of a study's files: one pass logs what is finished, and nothing waits for it.

A training writes files and never calls MLflow. Rule `track` at the end of a study, or `mcgrpo track STUDY.yaml` at any
time, reads them and brings the store up to date. This module, which the workflow imports, does not import mlflow.
"""

import os
from collections.abc import Mapping
from typing import Any

URI = "MLFLOW_TRACKING_URI"
DEFAULT_STORE = "sqlite:///mlflow.db"


def use_store(config: Mapping[str, Any]) -> None:
    """Set MLFLOW_TRACKING_URI to the store of a study, if it has one."""
    if store := store_of(config):
        os.environ[URI] = store


def store_of(config: Mapping[str, Any]) -> str:
    """MLFLOW_TRACKING_URI where it is set, else a study's `tracking_uri`; empty for no store."""
    return os.environ.get(URI, config.get("tracking_uri", DEFAULT_STORE)) or ""
