"""Checks of models and data sets: readable on this machine, or available from the Hugging Face Hub."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from httpx import HTTPError
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

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
REMEDIES = {
    GatedRepoError: "accept the licence at {page}, then `hf auth login` (or set HF_TOKEN)",
    RepositoryNotFoundError: "no such repository, or a private one: correct the name, or `hf auth login`",
    RevisionNotFoundError: "the repository has no revision {revision!r}",
    Exception: "let this machine reach {endpoint}, or name a local `folder` in the study",
}
"""Error -> remedy; the first that fits."""


def check_hub(config: Config) -> Iterator[Check]:
    """A line for every model and data set; the hub is asked for what is not on this machine."""
    for kind, topic in TOPICS.items():
        for name, spec in config[kind].items():
            path = made(config, kind, name) or spec.get("folder")
            is_folder = kind == "datasets" and Path(spec.get("hub", "")).exists()  # `load_dataset` takes one, too
            if "toy" in spec:
                continue
            if path is None and not is_folder:
                yield _check_repository(kind, name, spec)
            else:
                fault = _dataset_fault(config, name) if kind == "datasets" else _model_fault(Path(path).expanduser())
                yield Check("error" if fault else "ok", topic, f"{name}: {fault or path or spec['hub']}")


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


def _check_repository(kind: str, name: str, spec: Config) -> Check:
    """Whether a repository of the hub can be downloaded from here."""
    topic, where, what = TOPICS[kind], f"{name}: {spec['hub']}", {"repo_type": kind.removesuffix("s")}
    revision, page = (
        spec.get("revision"),
        f"{constants.ENDPOINT}/{'' if kind == 'models' else 'datasets/'}{spec['hub']}",
    )
    try:
        HfApi().repo_info(spec["hub"], revision=revision, timeout=TIMEOUT, **what)
        HfApi().auth_check(spec["hub"], **what)  # anyone may read what a gated repository says of itself
    except (OSError, ValueError, HTTPError) as error:  # the hub's own errors are OSErrors
        remedy = next(remedy for each, remedy in REMEDIES.items() if isinstance(error, each))
        said = next(iter(str(error).splitlines()), type(error).__name__)
        remedy = remedy.format(page=page, revision=revision, endpoint=constants.ENDPOINT)
        return Check("error", topic, f"{where} cannot be downloaded ({said})", remedy)
    if is_pinned(spec):
        return Check("ok", topic, f"{where}, pinned at {revision[:8]}")
    return Check("warning", topic, f"{where} is not pinned", "`mcgrpo lock STUDY.yaml` pins it")
