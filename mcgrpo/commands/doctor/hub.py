"""Checks of models and data sets: there already, and whole, or there to be had from the hub."""

import os
from collections.abc import Iterator
from pathlib import Path

from mcgrpo.commands.doctor import datasets
from mcgrpo.commands.doctor.checks import Check
from mcgrpo.commands.forecast.hub_answers import Answer, Entry
from mcgrpo.commands.forecast.sizes import Sizes, made
from mcgrpo.study.hub import is_pinned
from mcgrpo.study.plan import Config

TOPICS = {"models": "model", "datasets": "data set"}


def check_hub(config: Config, sizes: Sizes) -> Iterator[Check]:
    """A line for every model and data set that a setting uses; the hub was asked for what is not here."""
    if silent := [answer.detail for answer in sizes.hub.values() if answer.problem == "unreachable"]:
        yield Check("warning", "hub", f"{_endpoint()} cannot be asked: {silent[0]}")
    for kind in TOPICS:
        for name, spec in config[kind].items():
            if answer := sizes.hub.get((kind, name)):
                yield _check_answer((kind, name), spec, answer)
            elif kind == "datasets" and "toy" not in spec and (path := made(config, kind, name)):
                yield datasets.check_made(name, spec, path)
            elif path := made(config, kind, name):
                yield Check("ok", TOPICS[kind], f"{name}: made already, {path}")
            elif kind == "models" and "folder" in spec:
                yield _check_folder(name, spec["folder"], sizes)
            elif "folder" in spec:
                yield datasets.check_folder(name, spec)


def _check_folder(name: str, folder: str, sizes: Sizes) -> Check:
    if sizes.models[name].parameters:
        return Check("ok", "model", f"{name}: {folder}")
    return Check("lacking", "model", f"{name}: {folder} holds no config.json with safetensors files beside it")


def _check_answer(entry: Entry, spec: Config, answer: Answer) -> Check:
    kind, name = entry
    where = f"{name}: {spec['hub']}"
    page = f"{_endpoint()}/{'' if kind == 'models' else 'datasets/'}{spec['hub']}"
    remedies = {
        "gated": f"accept the licence at {page}, then `hf auth login` (or set HF_TOKEN)",
        "missing": "no such repository, or a private one: look at the name, or `hf auth login`",
        "revision": f"no revision {spec.get('revision')!r} there",
    }
    if answer.problem == "unreachable":
        return _check_unasked(entry, spec)
    if answer.problem:
        return Check(
            "lacking", TOPICS[kind], f"{where} cannot be downloaded ({answer.problem})", remedies[answer.problem]
        )
    if kind == "datasets" and (split := datasets.empty_split(spec, answer)):
        return Check("lacking", TOPICS[kind], f"{where}: split {split!r} is empty", "name another split in the study")
    if is_pinned(spec):
        return Check("ok", TOPICS[kind], f"{where}, pinned at {spec['revision'][:8]}")
    return Check("warning", TOPICS[kind], f"{where} can be had, but may move", "`mcgrpo lock STUDY.yaml` pins it")


def _check_unasked(entry: Entry, spec: Config) -> Check:
    """Without the hub: a data set can come from its cache where it is pinned; a model is always fetched."""
    kind, name = entry
    finding = f"{name}: {spec['hub']} is not here"
    cached = _cached_model(spec) if kind == "models" else _cached_dataset(spec)
    if cached is None:
        remedy = "let this machine reach the hub, or name a local `folder` in the study"
        return Check("lacking", TOPICS[kind], f"{finding}, nor in the cache", remedy)
    finding = f"{finding}, but in the cache: {cached}"
    if kind == "models":
        return Check("lacking", TOPICS[kind], finding, "name that as `folder` in the study, in place of `hub`")
    if is_pinned(spec):
        return Check("warning", TOPICS[kind], finding, "goes without the hub if that is what is pinned")
    return Check("lacking", TOPICS[kind], finding, "pin its revision in the study, and the hub need not be asked")


def _cached_model(spec: Config) -> Path | None:
    """The snapshot in the hub's cache, if it has weights."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(spec["hub"], revision=spec.get("revision"), local_files_only=True))
    except (OSError, ValueError):
        return None
    return folder if any(folder.glob("*.safetensors")) else None


def _cached_dataset(spec: Config) -> Path | None:
    """The folder of the cache of `datasets`, which names it after the repository."""
    from huggingface_hub.constants import HF_HOME

    root = Path(os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME, "datasets"))
    folder = root / spec["hub"].replace("/", "___").lower()
    exact = root / spec["hub"].replace("/", "___")
    return next((each for each in (exact, folder) if each.is_dir()), None)


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
