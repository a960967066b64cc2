"""What is known of a model's config.json before a job loads the model; the hub is not asked.

The fields have the names of Hugging Face's configs.
"""

from pathlib import Path
from typing import Any

from mcgrpo.files import RecordError, read_json
from mcgrpo.study.hub import CONFIG
from mcgrpo.study.paths import SOURCE
from mcgrpo.study.rows import built_file
from mcgrpo.study.settings import Config, StudyError


def model_config(config: Config, name: str) -> dict[str, Any]:
    """The config.json of a model of the study, as far as it is known on this machine.

    It is read from the model's folder, where that is here (one in `resources/models` counts if it was made of the same
    `hub` and `revision`); else it is what the study states, `models.NAME.config`; else it is empty. Of a config with
    several parts it is that of the text. `head_dim` and `num_key_value_heads` follow from the rest where it lacks them.

    Raises:
        StudyError: if what the study states differs from the file, with both values, or the file cannot be read.
    """
    spec = config["models"][name]
    stated, folder = spec.get("config", {}), folder_of(config, name)
    if folder is None:
        return completed(stated)
    try:
        real = read_json(folder / CONFIG)
    except (OSError, RecordError) as error:
        raise StudyError(f"models.{name}: {error}") from None
    check_stated(name, stated, real)
    return completed(real)


def folder_of(config: Config, name: str) -> Path | None:
    """The folder on this machine with the config.json of a model of the study, if there is one."""
    spec = config["models"][name]
    folder = Path(spec["folder"]).expanduser() if "folder" in spec else built_file(config, "models", name)
    if folder is None or not (folder / CONFIG).is_file() or ("hub" in spec and not _is_of(folder, spec)):
        return None
    return folder


def check_stated(name: str, stated: dict[str, Any], real: dict[str, Any]) -> None:
    """Refuse what a study states of a model's config where it differs from the real one; absent fields do not count.

    Raises:
        StudyError: naming the first field that differs, and both values.
    """
    real = real.get("text_config", real)
    for key, value in stated.items():
        if key in real and real[key] != value:
            raise StudyError(
                f"models.{name}.config.{key}: the study states {value!r}, the model's {CONFIG} has {real[key]!r}: "
                "correct it, or leave it out (`config: null`)"
            )


def _is_of(folder: Path, spec: Config) -> bool:
    """Whether a folder that was downloaded is of the repository and revision that the study names now."""
    try:
        source = read_json(folder / SOURCE)
    except (OSError, RecordError):
        return False
    return all(source.get(key) == spec.get(key) for key in ("hub", "revision"))


def completed(known: dict[str, Any]) -> dict[str, Any]:
    """A config.json, or its part for text, with the fields that some leave out, as transformers takes them."""
    known = known.get("text_config", known)
    heads, hidden = known.get("num_attention_heads"), known.get("hidden_size")
    derived = {"num_key_value_heads": heads} if heads else {}
    derived |= {"head_dim": hidden // heads} if heads and hidden else {}
    return derived | {key: value for key, value in known.items() if value is not None or key not in derived}
