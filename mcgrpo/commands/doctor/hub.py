"""Checks of models and data sets: complete on this machine, or available from the hub."""

import os
from collections import Counter
from collections.abc import Iterator

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.commands.forecast.hub_answers import Answer
from mcgrpo.commands.forecast.sizes import Sizes
from mcgrpo.data.datasets import examples
from mcgrpo.files import RecordError, read_jsonl
from mcgrpo.records import Example
from mcgrpo.study.hub import is_pinned
from mcgrpo.study.plan import Config
from mcgrpo.study.rows import made
from mcgrpo.study.settings import splits_of

TOPICS = {"models": "model", "datasets": "data set"}


def check_hub(config: Config, sizes: Sizes) -> Iterator[Check]:
    """A line for every model and data set that a setting uses; `sizes` has the hub's answers."""
    if silent := [answer.detail for answer in sizes.hub.values() if answer.problem == "unreachable"]:
        yield Check("warning", "hub", f"{_endpoint()} cannot be reached: {silent[0]}")
    for kind, topic in TOPICS.items():
        for name, spec in config[kind].items():
            path = made(config, kind, name) or spec.get("folder")
            if answer := sizes.hub.get((kind, name)):
                yield _check_answer(kind, name, spec, answer)
            elif path and "toy" not in spec:
                fault = _dataset_fault(config, name) if kind == "datasets" else _model_fault(sizes, name)
                yield Check("error" if fault else "ok", topic, f"{name}: {fault or path}")


def _model_fault(sizes: Sizes, name: str) -> str:
    return "" if sizes.models[name].parameters else "no config.json with safetensors files in its folder"


def _dataset_fault(config: Config, name: str) -> str:
    """The first row that cannot be read, or the split that is empty."""
    spec, path = config["datasets"][name], made(config, "datasets", name)
    try:
        rows = Counter(example.split for example in (read_jsonl(path, Example) if path else examples(spec)))
    except (RecordError, OSError) as error:
        return str(error)
    return next((f"split {split!r} is empty" for split in splits_of(spec) if not rows[split]), "")


def _check_answer(kind: str, name: str, spec: Config, answer: Answer) -> Check:
    page = f"{_endpoint()}/{'' if kind == 'models' else 'datasets/'}{spec['hub']}"
    splits = splits_of(spec) if kind == "datasets" else {}
    empty = [split for split, how in splits.items() if answer.rows.get(how.get("name", split)) == 0]
    problems = {
        "gated": f"accept the licence at {page}, then `hf auth login` (or set HF_TOKEN)",
        "missing": "no such repository, or a private one: correct the name, or `hf auth login`",
        "revision": f"the repository has no revision {spec.get('revision')!r}",
        "unreachable": "let this machine reach the hub, or name a local `folder` in the study",
    }
    where = f"{name}: {spec['hub']}"
    if answer.problem:
        # `datasets` reads a pinned data set from its cache
        status = "warning" if answer.problem == "unreachable" and kind == "datasets" and is_pinned(spec) else "error"
        return Check(status, TOPICS[kind], f"{where} cannot be downloaded ({answer.problem})", problems[answer.problem])
    if empty:
        return Check("error", TOPICS[kind], f"{where}: split {empty[0]!r} is empty", "name another split in the study")
    if is_pinned(spec):
        return Check("ok", TOPICS[kind], f"{where}, pinned at {spec['revision'][:8]}")
    return Check("warning", TOPICS[kind], f"{where} is not pinned", "`mcgrpo lock STUDY.yaml` pins it")


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
