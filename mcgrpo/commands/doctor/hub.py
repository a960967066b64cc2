"""Checks of models and data sets: readable on this machine, or available from the Hugging Face Hub."""

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from httpx import HTTPError
from huggingface_hub import HfApi
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.data.datasets import examples
from mcgrpo.files import RecordError, read_jsonl
from mcgrpo.records import Example
from mcgrpo.study.hub import is_pinned
from mcgrpo.study.plan import Config
from mcgrpo.study.rows import made
from mcgrpo.study.settings import splits_of

TIMEOUT = 5.0
"""Seconds that the hub has to answer."""
TOPICS = {"models": "model", "datasets": "data set"}


def check_hub(config: Config) -> Iterator[Check]:
    """A line for every model and data set; the hub is asked, in parallel, for what is not on this machine."""
    entries, unreachable = [(kind, name) for kind in TOPICS for name in config[kind]], {}
    with ThreadPoolExecutor(8) as pool:
        for check in filter(None, pool.map(lambda entry: _check(config, *entry), entries)):
            if isinstance(check, Check):
                yield check
            else:
                unreachable[check.needed] = check.detail
    if unreachable:
        finding = f"{_endpoint()} cannot be reached ({next(iter(unreachable.values()))}): {', '.join(unreachable)}"
        yield Check("error", "hub", finding, "let this machine reach it, or name a local `folder` in the study")


class _Unreachable(NamedTuple):
    needed: str
    detail: str


def _check(config: Config, kind: str, name: str) -> Check | _Unreachable | None:
    spec = config[kind][name]
    if "toy" in spec:
        return None
    path = made(config, kind, name) or spec.get("folder")
    if path is None and not (kind == "datasets" and Path(spec["hub"]).exists()):  # `load_dataset` takes a folder, too
        return _check_repository(kind, name, spec)
    fault = _dataset_fault(config, name) if kind == "datasets" else _model_fault(Path(path).expanduser())
    return Check("error" if fault else "ok", TOPICS[kind], f"{name}: {fault or path or spec['hub']}")


def _model_fault(folder: Path) -> str:
    complete = (folder / "config.json").is_file() and any(folder.glob("model*.safetensors"))
    return "" if complete else f"no config.json with safetensors files in {folder}"


def _dataset_fault(config: Config, name: str) -> str:
    """The first row that cannot be read, or the split that is empty."""
    spec, path = config["datasets"][name], made(config, "datasets", name)
    try:
        rows = Counter(example.split for example in (read_jsonl(path, Example) if path else examples(spec)))
    except (RecordError, OSError) as error:
        return str(error)
    return next((f"split {split!r} is empty" for split in splits_of(spec) if not rows[split]), "")


def _check_repository(kind: str, name: str, spec: Config) -> Check | _Unreachable:
    """Whether a repository of the hub can be downloaded from here; anyone may read the metadata of a gated one."""
    where, repository = f"{name}: {spec['hub']}", {"repo_type": kind.removesuffix("s")}
    try:
        info = HfApi().repo_info(spec["hub"], revision=spec.get("revision"), timeout=TIMEOUT, **repository)
        if info.gated or info.private:
            HfApi().auth_check(spec["hub"], **repository)
    except HfHubHTTPError as error:
        return Check("error", TOPICS[kind], f"{where} cannot be downloaded", _remedy(kind, spec, error))
    except (OSError, ValueError, HTTPError) as error:
        return _Unreachable(spec["hub"], next(iter(str(error).splitlines()), type(error).__name__))
    if is_pinned(spec):
        return Check("ok", TOPICS[kind], f"{where}, pinned at {spec['revision'][:8]}")
    return Check("warning", TOPICS[kind], f"{where} is not pinned", "`mcgrpo lock STUDY.yaml` pins it")


def _remedy(kind: str, spec: Config, error: HfHubHTTPError) -> str:
    if isinstance(error, GatedRepoError):
        page = f"{_endpoint()}/{'' if kind == 'models' else 'datasets/'}{spec['hub']}"
        return f"accept the licence at {page}, then `hf auth login` (or set HF_TOKEN)"
    if isinstance(error, RevisionNotFoundError):
        return f"the repository has no revision {spec.get('revision')!r}"
    if isinstance(error, RepositoryNotFoundError) or error.response.status_code in (401, 403):
        return "no such repository, or a private one: correct the name, or `hf auth login`"
    return next(iter(str(error).splitlines()), type(error).__name__)


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
