"""How many rows a study's data sets have, as far as it can be known before they are made."""

from pathlib import Path
from typing import Any

from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.settings import Config, splits_of

HUB = {
    "openai/gsm8k": {"train": 7473, "test": 1319},
    "DigitalLearningGmbH/MATH-lighteval": {"train": 7500, "test": 5000},
    "HuggingFaceH4/MATH-500": {"test": 500},
    "HuggingFaceH4/aime_2024": {"train": 30},
    "math-ai/amc23": {"test": 40},
}
"""The paper's data sets: rows of each split, by the hub's names."""


def built_file(config: Config, kind: str, name: str) -> Path | None:
    """Where a model or data set lies that the workflow has made, if it has."""
    files = StudyFiles(config["study"])
    path = files.model(name) if kind == "models" else files.data(name)
    return path if path.exists() else None


def rows_of(config: Config, name: str) -> dict[str, int]:
    """Split -> rows of a data set: as many as are taken, or as there are in a folder or in `HUB`, if that is less."""
    spec = config["datasets"][name]
    counts = {split: _counts(spec, split, wanted) for split, wanted in splits_of(spec).items()}
    return {split: min(known) for split, known in counts.items() if known}


def _counts(spec: Config, split: str, wanted: dict[str, Any]) -> list[int]:
    """Upper bounds on the rows of a split: the study's `rows`, and the size of the source if it is known."""
    source, most = wanted.get("name", split), [wanted["rows"]] if "rows" in wanted else []
    if "folder" in spec and (file := Path(spec["folder"]).expanduser() / f"{source}.jsonl").is_file():
        return [*most, len(file.read_bytes().splitlines())]
    there = HUB.get(spec.get("hub", ""), {}).get(source)
    return most if there is None else [*most, there]
