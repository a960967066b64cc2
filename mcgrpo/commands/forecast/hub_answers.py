"""What the hub says of the models and data sets of a study, all asked at once, within seconds."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from mcgrpo.files import read_json

TIMEOUT = 5.0
"""Seconds that the hub has for an answer."""
Entry = tuple[str, str]
"""Kind (`models`, `datasets`) and name in the study."""
Problem = Literal["", "gated", "missing", "revision", "unreachable"]


@dataclass(frozen=True)
class Answer:
    """One repository of the hub, as far as it says.

    Args:
        problem: why it cannot be downloaded: `gated` (a licence is to be accepted, or a token is missing), `missing`
            (no such repository, or a private one), `revision` (not one of it), `unreachable` (the hub did not answer).
        detail: the client's words, in one line.
        parameters: of a model's safetensors files.
        download: bytes of what would be downloaded.
        config: a model's config.json; empty where it cannot be had.
        rows: of a data set, by the source's name of the split.
    """

    problem: Problem = ""
    detail: str = ""
    parameters: int | None = None
    download: int | None = None
    config: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


def ask(entries: Iterable[tuple[Entry, dict[str, Any]]]) -> dict[Entry, Answer]:
    """Ask for all entries side by side."""
    entries = list(entries)
    with ThreadPoolExecutor(max(len(entries), 1)) as pool:
        answers = pool.map(lambda each: _ask(each[0][0], each[1]), entries)
    return dict(zip((entry for entry, _ in entries), answers, strict=True))


def _ask(kind: str, spec: dict[str, Any]) -> Answer:
    from httpx import HTTPError
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        return _model(spec) if kind == "models" else _dataset(spec)
    except GatedRepoError as error:
        return _refused("gated", error)
    except RevisionNotFoundError as error:
        return _refused("revision", error)
    except RepositoryNotFoundError as error:
        return _refused("missing", error)
    except HfHubHTTPError as error:
        return _refused("gated" if error.response.status_code in (401, 403) else "unreachable", error)
    except (OSError, ValueError, HTTPError) as error:
        return _refused("unreachable", error)


def _refused(problem: Problem, error: Exception) -> Answer:
    return Answer(problem, next(iter(str(error).splitlines()), type(error).__name__))


def _model(spec: dict[str, Any]) -> Answer:
    from huggingface_hub import HfApi

    from mcgrpo.data.models import IGNORED

    info = HfApi().model_info(spec["hub"], revision=spec.get("revision"), timeout=TIMEOUT, files_metadata=True)
    _check_access(info, "model")
    return Answer(
        parameters=info.safetensors.total if info.safetensors else None,
        download=_bytes(info, IGNORED),
        config=_config(spec["hub"], info.sha),
    )


def _dataset(spec: dict[str, Any]) -> Answer:
    from huggingface_hub import HfApi

    info = HfApi().dataset_info(spec["hub"], revision=spec.get("revision"), timeout=TIMEOUT, files_metadata=True)
    _check_access(info, "dataset")
    return Answer(download=_bytes(info, []), rows=_rows(info, spec.get("config")))


def _check_access(info: Any, kind: str) -> None:
    """What a gated repository says of itself anyone may read; its files are another matter."""
    from huggingface_hub import HfApi

    if info.gated or info.private:
        HfApi().auth_check(info.id, repo_type=kind)


def _bytes(info: Any, ignored: list[str]) -> int | None:
    from huggingface_hub.utils import filter_repo_objects

    files = filter_repo_objects(info.siblings or [], ignore_patterns=ignored, key=lambda file: file.rfilename)
    sizes = [file.size for file in files]
    return None if not sizes or None in sizes else sum(sizes)


def _config(name: str, revision: str | None) -> dict[str, Any]:
    from httpx import HTTPError
    from huggingface_hub import hf_hub_download

    try:
        return read_json(hf_hub_download(name, "config.json", revision=revision, etag_timeout=TIMEOUT))
    except (OSError, ValueError, HTTPError):
        return {}


def _rows(info: Any, config: str | None) -> dict[str, int]:
    """Split -> rows, of the `dataset_info` that the card of a data set has; empty where it has none."""
    card = getattr(info.card_data, "dataset_info", None) or []
    for part in [card] if isinstance(card, dict) else card:
        if part.get("config_name", "default") == (config or "default"):
            return {split["name"]: split["num_examples"] for split in part.get("splits", [])}
    return {}
