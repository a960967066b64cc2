"""How many rows a study's data sets have, as far as it can be known without the hub."""

from pathlib import Path
from typing import Any

from mcgrpo.files import RecordError, iter_json_lines, read_json
from mcgrpo.study.hub import is_pinned
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config
from mcgrpo.study.settings import splits_of

HUB = {
    "openai/gsm8k": {"train": 7473, "test": 1319},
    "DigitalLearningGmbH/MATH-lighteval": {"train": 7500, "test": 5000},
    "HuggingFaceH4/MATH-500": {"test": 500},
    "HuggingFaceH4/aime_2024": {"train": 30},
    "math-ai/amc23": {"test": 40},
}
"""The paper's data sets: rows of each split, by the hub's names."""


def made(config: Config, kind: str, name: str) -> Path | None:
    """Where a model or data set lies that the workflow has made from this very entry of the study, if it has."""
    files = StudyFiles(config["study"])
    if kind == "models":
        path, source = files.model(name), files.model_source(name)
    else:
        path, source = files.data(name), files.data_source(name)
    spec = config[kind][name]
    if not path.exists() or ("toy" in spec and kind == "models"):
        return path if path.exists() else None
    try:
        origin = read_json(source)
    except RecordError:
        return None
    wanted = spec if is_pinned(spec) else {key: value for key, value in spec.items() if key != "revision"}
    taken_out = {"splits", "config"} & (origin.keys() - spec.keys())
    return path if not taken_out and all(origin.get(key) == value for key, value in wanted.items()) else None


def rows_of(config: Config, name: str) -> dict[str, int]:
    """Split -> rows of a data set: counted where it is on this machine, else as the study or `HUB` says.

    Of a data set that cannot be read nothing is known.
    """
    spec = config["datasets"][name]
    try:
        if path := made(config, "datasets", name):
            splits = [str(row.get("split")) for _, row in iter_json_lines(path)]
            return {split: splits.count(split) for split in set(splits)}
        return _rows_of_source(spec)
    except (RecordError, OSError):
        return {}


def _rows_of_source(spec: dict[str, Any]) -> dict[str, int]:
    counted = {split: _counted(spec, split, wanted) for split, wanted in splits_of(spec).items()}
    return {split: count for split, count in counted.items() if count is not None}


def _counted(spec: dict[str, Any], split: str, wanted: dict[str, Any]) -> int | None:
    source, most = wanted.get("name", split), wanted.get("rows")
    if "toy" in spec:
        return most
    if "folder" in spec:
        file = Path(spec["folder"]).expanduser() / f"{source}.jsonl"
        count = sum(1 for _ in iter_json_lines(file)) if file.is_file() else None
    else:
        count = HUB.get(spec["hub"], {}).get(source)
    return count if count is None or most is None else min(count, most)
