"""Download a model from the hub."""

import shutil
from pathlib import Path
from typing import Any

from mcgrpo.files import write_json
from mcgrpo.study.hub import commit, config_json, named
from mcgrpo.study.model_config import check_stated
from mcgrpo.study.paths import SOURCE

IGNORED = ["*.bin", "*.pth", "original/*"]
"""Weights in formats other than safetensors."""


def fetch(spec: dict[str, Any], output: Path) -> None:
    """Download a model from the hub and record the commit of its revision beside the weights.

    Raises:
        HubError: if the download fails, in one line.
        StudyError: if its config.json is not what the study states (`config`), before the weights are downloaded.
    """
    from huggingface_hub import snapshot_download

    revision = commit("models", spec)
    spec, stated = dict(spec), spec.get("config", {})
    spec.pop("config", None)
    if stated:
        check_stated(output.name, stated, config_json({**spec, "revision": revision}))
    with named(spec["hub"]):
        snapshot_download(spec["hub"], revision=revision, local_dir=output, ignore_patterns=IGNORED)
    shutil.rmtree(output / ".cache", ignore_errors=True)  # when each file was downloaded
    write_json(output / SOURCE, {**spec, "commit": revision})
