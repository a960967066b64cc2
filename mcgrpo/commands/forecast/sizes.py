"""How large the models and data sets of a study are, without loading one.

What is made or fetched already is looked at where it lies; toys and local folders are computed or counted; the hub is
asked for the rest. What nobody knows stays unknown.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcgrpo.commands.forecast.hub_answers import Answer, Entry, ask
from mcgrpo.files import RecordError, read_json
from mcgrpo.study.plan import Config
from mcgrpo.study.rows import made, rows_of

VOCABULARIES = {"word": 177, "bytes": 259}
"""Tokens of each tokenizer of `mcgrpo.data.toy.tokenizer`, whose import takes seconds."""
INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"


@dataclass(frozen=True)
class Model:
    """What is known of a model: its parameters, and the sizes of its config.json; 0 where one is not known."""

    parameters: int = 0
    hidden_size: int = 0
    layers: int = 0
    vocabulary: int = 0


@dataclass(frozen=True)
class Sizes:
    """What is known of everything that a study starts from.

    Args:
        models: by name in the study.
        rows: data set -> our split -> examples; without the splits that nothing is known of.
        hub: answers for what had to be asked for.
    """

    models: dict[str, Model] = field(default_factory=dict)
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    hub: dict[Entry, Answer] = field(default_factory=dict)


def sizes(config: Config) -> Sizes:
    """Find out; the hub is asked only for what is neither here nor made here."""
    answers = ask(to_fetch(config))
    models = {name: _model(config, name, answers.get(("models", name))) for name in config["models"]}
    told = {name: answer.rows for (kind, name), answer in answers.items() if kind == "datasets"}
    rows = {name: rows_of(config, name, told.get(name)) for name in config["datasets"]}
    return Sizes(models, rows, answers)


def to_fetch(config: Config) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """Every model and data set of the hub that a setting uses and that is not under `resources` yet."""
    settings = config["settings"].values()
    used = {("models", setting["model"]) for setting in settings}
    used |= {("datasets", setting["dataset"]) for setting in settings}
    used |= {("datasets", name) for setting in settings for names in setting["benchmarks"].values() for name in names}
    for kind, name in sorted(used):
        spec = config[kind][name]
        if "hub" in spec and not Path(spec["hub"]).exists() and made(config, kind, name) is None:
            yield (kind, name), spec


def _model(config: Config, name: str, answer: Answer | None) -> Model:
    spec = config["models"][name]
    if "folder" in spec:
        return of_folder(Path(spec["folder"]).expanduser())
    if "toy" in spec:
        return of_toy(spec["toy"])
    if path := made(config, "models", name):
        return of_folder(path)
    return of_config(answer.config, answer.parameters or 0) if answer else Model()


def of_config(config: dict[str, Any], parameters: int) -> Model:
    """A model by its config.json; of one that also sees or hears, the part that reads text."""
    text = config.get("text_config", config)
    keys = ("hidden_size", "num_hidden_layers", "vocab_size")
    return Model(parameters, *(int(text.get(key) or 0) for key in keys))


def of_folder(folder: Path) -> Model:
    """A model by its config.json and the headers of its safetensors files; a folder without them tells nothing."""
    try:
        config = read_json(folder / "config.json")
    except RecordError:
        return Model()
    return of_config(config, sum(map(_parameters, _weights(folder))))


def _weights(folder: Path) -> list[Path]:
    """The files that transformers would load: those of the index, or the one file."""
    if (folder / INDEX).is_file():
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        return [folder / name for name in sorted(set(index["weight_map"].values())) if (folder / name).is_file()]
    return [folder / SINGLE] if (folder / SINGLE).is_file() else []


def _parameters(file: Path) -> int:
    from safetensors import safe_open

    with safe_open(file, framework="numpy") as tensors:
        return sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118


def of_toy(spec: dict[str, Any]) -> Model:
    """A toy by its spec; as `mcgrpo.data.toy.models.ModelSpec`, whose import takes seconds, would build it."""
    hidden, layers, inner = (spec.get(key, default) for key, default in TOY_SIZES.items())
    vocabulary = VOCABULARIES[spec.get("tokenizer", "word")]
    norms = 2 * hidden + (2 * hidden // spec.get("heads", 2) if spec["architecture"] == "qwen3" else 0)
    layer = 4 * hidden * hidden + 3 * hidden * inner + norms
    return Model(vocabulary * hidden + layers * layer + hidden, hidden, layers, vocabulary)


TOY_SIZES = {"hidden_size": 64, "layers": 2, "intermediate_size": 128}
"""Defaults of `mcgrpo.data.toy.models.ModelSpec`."""
