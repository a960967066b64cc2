"""How large a study's models and data sets are, without loading them.

The sizes of what is on this machine are read from its files, those of toys computed, and the hub is asked for the rest.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import safe_open

from mcgrpo.commands.forecast.hub_answers import Answer, Entry, ask
from mcgrpo.files import RecordError, read_json
from mcgrpo.study.plan import Config
from mcgrpo.study.rows import made, rows_of

VOCABULARIES = {"word": 177, "bytes": 259}
"""Tokens of each tokenizer of `mcgrpo.data.toy.tokenizer`, whose import takes seconds."""
TOY_SIZES = {"hidden_size": 64, "layers": 2, "intermediate_size": 128}
"""Defaults of `mcgrpo.data.toy.models.ModelSpec`, likewise."""


class Model(NamedTuple):
    """The sizes of a model; 0 if unknown."""

    parameters: int = 0
    hidden_size: int = 0
    layers: int = 0
    vocabulary: int = 0


@dataclass(frozen=True)
class Sizes:
    """The sizes of everything that a study starts from.

    Args:
        models: by name in the study.
        rows: data set -> split of the study -> rows, of those that are known.
        hub: answers of the hub, for what is not on this machine.
    """

    models: dict[str, Model] = field(default_factory=dict)
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    hub: dict[Entry, Answer] = field(default_factory=dict)


def sizes(config: Config) -> Sizes:
    """The sizes of a study; the hub is asked only for what is not on this machine."""
    answers = ask(_to_fetch(config))
    models = {name: _model(config, name, answers.get(("models", name))) for name in config["models"]}
    told = {name: answer.rows for (kind, name), answer in answers.items() if kind == "datasets"}
    return Sizes(models, {name: rows_of(config, name, told.get(name)) for name in config["datasets"]}, answers)


def _to_fetch(config: Config) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """Every model and data set of the hub that an experiment uses and that is not under `resources` yet."""
    used = set()
    for name in {name for experiment in config["experiments"].values() for name in experiment["settings"]}:
        setting = config["settings"][name]
        names = [setting["dataset"], *(name for names in setting["benchmarks"].values() for name in names)]
        used |= {("models", setting["model"]), *(("datasets", name) for name in names)}
    for kind, name in sorted(used):
        spec = config[kind][name]
        local = kind == "datasets" and Path(spec.get("hub", "")).exists()  # `load_dataset` takes a folder, too
        if "hub" in spec and not local and made(config, kind, name) is None:
            yield (kind, name), spec


def _model(config: Config, name: str, answer: Answer | None) -> Model:
    spec = config["models"][name]
    if "toy" in spec:
        return of_toy(spec["toy"])
    if folder := spec.get("folder") or made(config, "models", name):
        return of_folder(Path(folder).expanduser())
    return _of_config(answer.config, answer.parameters) if answer else Model()


def _of_config(config: dict[str, Any], parameters: int) -> Model:
    """A model by its config.json; of a multimodal one, the part that reads text."""
    text = config.get("text_config", config)
    return Model(parameters, *(int(text.get(key) or 0) for key in ("hidden_size", "num_hidden_layers", "vocab_size")))


def of_folder(folder: Path) -> Model:
    """A model by its config.json and the headers of its safetensors files."""
    single, parameters = folder / "model.safetensors", 0
    for file in [single] if single.is_file() else folder.glob("model-*-of-*.safetensors"):
        with safe_open(file, framework="numpy") as tensors:
            parameters += sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    try:
        return _of_config(read_json(folder / "config.json"), parameters)
    except RecordError:
        return Model()


def of_toy(spec: dict[str, Any]) -> Model:
    """A toy by its spec, as `mcgrpo.data.toy.models.create` would build it."""
    hidden, layers, inner = (spec.get(key, default) for key, default in TOY_SIZES.items())
    vocabulary = VOCABULARIES[spec.get("tokenizer", "word")]
    norms = 2 * hidden + (2 * hidden // spec.get("heads", 2) if spec["architecture"] == "qwen3" else 0)
    layer = 4 * hidden * hidden + 3 * hidden * inner + norms
    return Model(vocabulary * hidden + layers * layer + hidden, hidden, layers, vocabulary)
