"""What the Hugging Face Hub says of a study's models and data sets; asked in parallel, with a timeout."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from httpx import HTTPError
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

from mcgrpo.files import read_json

TIMEOUT = 5.0
"""Seconds that the hub has to answer."""
Entry = tuple[str, str]
"""Kind (`models`, `datasets`) and name in the study."""
Problem = Literal["", "gated", "missing", "revision", "unreachable"]
PROBLEMS = {GatedRepoError: "gated", RevisionNotFoundError: "revision", RepositoryNotFoundError: "missing"}


@dataclass(frozen=True)
class Answer:
    """What the hub says of one repository.

    Args:
        problem: why it cannot be downloaded: `gated` (licence not accepted, or no token), `missing` (no such
            repository, or a private one), `revision` (no such revision), `unreachable` (the hub did not answer).
        detail: the client's error message, in one line.
        parameters: of a model's safetensors files; 0 if unknown.
        config: a model's config.json; empty if it cannot be read.
        rows: of a data set, by the repository's name of the split.
    """

    problem: Problem = ""
    detail: str = ""
    parameters: int = 0
    config: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


def ask(entries: Iterable[tuple[Entry, dict[str, Any]]]) -> dict[Entry, Answer]:
    """Ask for all entries in parallel."""
    entries = dict(entries)
    with ThreadPoolExecutor(max(len(entries), 1)) as pool:
        return dict(zip(entries, pool.map(_ask, (kind for kind, _ in entries), entries.values()), strict=True))


def _ask(kind: str, spec: dict[str, Any]) -> Answer:
    name, revision = spec["hub"], spec.get("revision")
    try:
        info = HfApi().repo_info(name, repo_type=kind.removesuffix("s"), revision=revision, timeout=TIMEOUT)
        if info.gated or info.private:  # anyone may read the metadata of a gated repository
            HfApi().auth_check(name, repo_type=kind.removesuffix("s"))
        if kind == "datasets":
            return Answer(rows=_rows(info, spec.get("config")))
        return Answer(parameters=info.safetensors.total if info.safetensors else 0, config=_config(name, info.sha))
    except (OSError, ValueError, HTTPError) as error:  # the hub's own errors are OSErrors
        refused = isinstance(error, HfHubHTTPError) and error.response.status_code in (401, 403)
        known = (problem for each, problem in PROBLEMS.items() if isinstance(error, each))
        problem = next(known, "gated" if refused else "unreachable")
        return Answer(problem, next(iter(str(error).splitlines()), type(error).__name__))


def _config(name: str, revision: str | None) -> dict[str, Any]:
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
