"""What the Hugging Face Hub says of a study's models and data sets; asked in parallel, with a timeout."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any, Literal

from mcgrpo.data.models import IGNORED
from mcgrpo.files import read_json

TIMEOUT = 5.0
"""Seconds that the hub has to answer."""
Entry = tuple[str, str]
"""Kind (`models`, `datasets`) and name in the study."""
Problem = Literal["", "gated", "missing", "revision", "unreachable"]


@dataclass(frozen=True)
class Answer:
    """What the hub says of one repository.

    Args:
        problem: why it cannot be downloaded: `gated` (licence not accepted, or no token), `missing` (no such
            repository, or a private one), `revision` (no such revision), `unreachable` (the hub did not answer).
        detail: the client's error message, in one line.
        parameters: of a model's safetensors files.
        download: bytes to download.
        config: a model's config.json; empty if it cannot be read.
        rows: of a data set, by the repository's name of the split.
    """

    problem: Problem = ""
    detail: str = ""
    parameters: int | None = None
    download: int | None = None
    config: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


def ask(entries: Iterable[tuple[Entry, dict[str, Any]]]) -> dict[Entry, Answer]:
    """Ask for all entries in parallel."""
    entries = dict(entries)
    with ThreadPoolExecutor(max(len(entries), 1)) as pool:
        return dict(zip(entries, pool.map(_ask, (kind for kind, _ in entries), entries.values()), strict=True))


def _ask(kind: str, spec: dict[str, Any]) -> Answer:
    from httpx import HTTPError
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        return _model(spec) if kind == "models" else _dataset(spec)
    except (OSError, ValueError, HTTPError) as error:  # the hub's own errors are OSErrors
        problems = {GatedRepoError: "gated", RevisionNotFoundError: "revision", RepositoryNotFoundError: "missing"}
        refused = isinstance(error, HfHubHTTPError) and error.response.status_code in (401, 403)
        known = (problem for each, problem in problems.items() if isinstance(error, each))
        problem = next(known, "gated" if refused else "unreachable")
        return Answer(problem, next(iter(str(error).splitlines()), type(error).__name__))


def _model(spec: dict[str, Any]) -> Answer:
    from huggingface_hub import HfApi

    info = HfApi().model_info(spec["hub"], revision=spec.get("revision"), timeout=TIMEOUT, files_metadata=True)
    _check_access(info, "model")
    parameters = info.safetensors.total if info.safetensors else None
    return Answer("", "", parameters, _bytes(info, IGNORED), _config(spec["hub"], info.sha))


def _dataset(spec: dict[str, Any]) -> Answer:
    from huggingface_hub import HfApi

    info = HfApi().dataset_info(spec["hub"], revision=spec.get("revision"), timeout=TIMEOUT, files_metadata=True)
    _check_access(info, "dataset")
    return Answer(download=_bytes(info, []), rows=_rows(info, spec.get("config")))


def _check_access(info: Any, kind: str) -> None:
    """Raise if the files may not be read: anyone may read the metadata of a gated repository."""
    from huggingface_hub import HfApi

    if info.gated or info.private:
        HfApi().auth_check(info.id, repo_type=kind)


def _bytes(info: Any, ignored: list[str]) -> int | None:
    sizes = [file.size for file in info.siblings or [] if not any(fnmatch(file.rfilename, each) for each in ignored)]
    return None if not sizes or None in sizes else sum(sizes)


def _config(name: str, revision: str | None) -> dict[str, Any]:
    from httpx import HTTPError
    from huggingface_hub import hf_hub_download

    try:
        return read_json(hf_hub_download(name, "config.json", revision=revision, etag_timeout=TIMEOUT))
    except (OSError, ValueError, HTTPError):
        return {}


def _rows(info: Any, config: str | None) -> dict[str, int]:
    """Split -> rows, by the `dataset_info` of the dataset card; empty without one."""
    card = getattr(info.card_data, "dataset_info", None) or []
    for part in [card] if isinstance(card, dict) else card:
        if part.get("config_name", "default") == (config or "default"):
            return {split["name"]: split["num_examples"] for split in part.get("splits", [])}
    return {}
