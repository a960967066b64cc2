"""Download a model from the hub."""

from pathlib import Path
from typing import Any

from mcgrpo.files import write_json
from mcgrpo.study.hub import commit, named
from mcgrpo.study.paths import SOURCE

IGNORED = ["*.bin", "*.pth", "original/*"]
"""Weights in formats other than safetensors."""


def fetch(spec: dict[str, Any], output: Path) -> None:
    """Download a model from the hub and record the commit of its revision beside the weights.

    Raises:
        HubError: if the download fails, in one line.
    """
    from huggingface_hub import snapshot_download

    revision = commit("models", spec)
    with named(spec["hub"]):
        snapshot_download(spec["hub"], revision=revision, local_dir=output, ignore_patterns=IGNORED)
    write_json(output / SOURCE, {**spec, "commit": revision})
