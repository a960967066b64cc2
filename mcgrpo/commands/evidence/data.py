"""What an archive says of its data sets, against what is known of them: its study, its grades, and the toy's own code.

Nothing is read but files of the archive: the folder or the hub of a data set is not looked at.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mcgrpo.analyse.collect import Input
from mcgrpo.analyse.measures import golds_sum
from mcgrpo.commands.evidence.bundle import outcomes
from mcgrpo.commands.evidence.contents import data_sets, graded
from mcgrpo.data.audit import audit
from mcgrpo.data.datasets import examples
from mcgrpo.data.overlap import overlap
from mcgrpo.files import iter_json_lines, read_json, write_jsonl
from mcgrpo.grade.verifier import Verifier
from mcgrpo.records import Example, Plan
from mcgrpo.study.hub import is_pinned
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config
from mcgrpo.study.rows import HUB
from mcgrpo.study.settings import splits_of
from mcgrpo.sums import sha256

OF_GOLDS = ("rows", "golds_unparsable", "golds_not_correct", "golds_not_plain")
"""What of an audit depends on its problems' ids and answers alone."""


class Archived(NamedTuple):
    """An archive's study, plan and files, what its runs read as far as it was collected; a folder for what is made."""

    config: Config
    planned: Plan
    there: StudyFiles
    inputs: list[Input]
    made: Path

    def name(self, path: Path | str) -> str:
        """A file as it is called in the archive."""
        return str(path).removeprefix(f"{self.there.root}/")


def faults(archived: Archived) -> Iterator[str]:
    """What the files on the data say of them, and is not so.

    Toy data are made again. Of others the rows are compared with those that the study takes, and the golds of the test
    split with those of the grades.

    Raises:
        RecordError: for a file that cannot be read; ValueError and others for what tampering leads to.
    """
    toys: dict[str, list[Example]] = {}
    with Verifier() as verifier:
        for name in data_sets(archived.planned):
            if not archived.there.audit(name).is_file():  # told as missing
                continue
            spec = archived.config["datasets"][name]
            if "toy" in spec:
                toys[name] = examples(json.loads(json.dumps(spec, sort_keys=True)))  # the order in which it was made
            known = toys.get(name) or list(_graded(archived, name))
            own = ":" in spec["task"]  # a user's code, which is not run
            made = {} if own else audit(known, spec["task"], None, verifier)["splits"]
            if name not in toys:
                made = {split: {key: found.get(key) for key in OF_GOLDS} for split, found in made.items()}
            yield from _of_audit(archived, name, made)
    yield from _of_trainings(archived, toys)
    yield from _of_grades(archived, toys)
    yield from _of_overlaps(archived, toys)


def fewer(archived: Archived) -> Iterator[str]:
    """Splits with fewer rows than the study takes at most, where the rows that there are cannot be known."""
    for name in data_sets(archived.planned):
        path, spec = archived.there.audit(name), archived.config["datasets"][name]
        for split, wanted in splits_of(spec).items():
            rows = read_json(path)["splits"][split]["rows"] if path.is_file() else math.inf
            if "toy" not in spec and _there(spec, split) is None and rows < wanted.get("rows", 0):
                yield f"{name}: {rows} rows of {split}, where the study takes up to {wanted['rows']}"


def _there(spec: Config, split: str) -> int | None:
    """The rows that a split has at its source, if that is known."""
    return HUB.get(spec.get("hub", ""), {}).get(splits_of(spec)[split].get("name", split))


def _of_audit(archived: Archived, name: str, made: dict[str, dict[str, Any]]) -> Iterator[str]:
    """An audit against what was made again of it, the study, and the record of the data set's source."""
    spec, there = archived.config["datasets"][name], archived.there
    said, source = read_json(there.audit(name)), read_json(there.data_source(name))
    where = archived.name(there.audit(name))
    resolved = {"revision": source.get("revision")} if "hub" in spec and not is_pinned(spec) else {}
    if {key: source.get(key) for key in {**spec, **resolved}} != spec | resolved:
        yield f"{archived.name(there.data_source(name))}: is not the study's source"
    if (said["source"], said["task"], set(said["splits"])) != (source, spec["task"], set(splits_of(spec))):
        yield f"{where}: source, task or splits are not the study's"
        return
    for split, told in said["splits"].items():
        known, most = _there(spec, split), splits_of(spec)[split].get("rows", told["rows"])
        if told["rows"] > most or (known is not None and told["rows"] != min(most, known)):
            yield f"{where}: {told['rows']} rows of {split}, where the study takes {min(most, known or most)}"
        for key, value in made.get(split, {}).items():
            if key in told and told[key] != value:  # another version's may lack one
                yield f"{where}: {key} of {split} is {_count(told[key])}, by the data {_count(value)}"


def _count(value: Any) -> str:
    """A number, or the count of a list of ids."""
    return str(value.get("count")) if isinstance(value, dict) else str(value)


def _graded(archived: Archived, name: str) -> Iterator[Example]:
    """The test split of a data set as grades have it: ids and answers; nothing where an answer is in its solution."""
    runs = (run for run, evaluated in archived.planned.evaluations.items() if name in evaluated)
    paths = (archived.there.results.grades(run, name) for run in runs)
    rows = next((iter_json_lines(path) for path in paths if path.is_file()), iter(()))
    answers = {row["id"]: str(row.get("answer") or "") for _, row in rows}
    if all(answers.values()):
        yield from (Example(id, "test", id, answer) for id, answer in answers.items())


def _of_trainings(archived: Archived, toys: dict[str, list[Example]]) -> Iterator[str]:
    """The data that trainings say they read, against the audits and toy data."""
    sums = {}
    for name, known in toys.items():
        write_jsonl(path := archived.made / f"{name}.jsonl", known)
        sums[name] = sha256(path)
    of = {run.name: run.dataset for run in archived.planned.runs}
    for run, outcome in outcomes(archived.planned, archived.there.results).items():
        name, data = of[run], outcome.data
        if data and name in sums and data.sha256 != sums[name]:
            yield f"{run}: trained on another {name} than the study's toy data"
        path = archived.there.audit(name)
        rows = read_json(path)["splits"].get("train", {}).get("rows") if path.is_file() else None
        if data and rows is not None and data.rows + data.left_out != rows:
            yield f"{run}: trained on {data.rows + data.left_out} rows of {name}, which has {rows} by its audit"


def _of_grades(archived: Archived, toys: dict[str, list[Example]]) -> Iterator[str]:
    """The problems of all grades, against toy data; where the sums of their golds are equal, as `collect` has them."""
    tests = {name: {e.id: e.answer for e in known if e.split == "test"} for name, known in toys.items()}
    sums = {name: golds_sum(golds.items()) for name, golds in tests.items()}
    results = archived.there.results
    equal = {
        results.grades(run, name)
        for (_, kind, name), found, run in archived.inputs
        if kind == "golds" and sums.get(name) == found
    }
    for _, name, path in graded(archived.planned, results):
        if name in tests and path not in equal and path.is_file():
            for where, row in iter_json_lines(path):
                if tests[name].get(row["id"]) != row.get("answer"):
                    yield f"{archived.name(where)}: is of no problem of {name}, or has another gold"
                    break


def _of_overlaps(archived: Archived, toys: dict[str, list[Example]]) -> Iterator[str]:
    """Questions that are both trained and evaluated on, of toy data."""
    path, planned = archived.there.results.overlap, archived.planned
    said = read_json(path) if path.is_file() else {}
    splits: dict[tuple[str, str], list[Example]] = defaultdict(list)
    for name, known in toys.items():
        for example in known:
            splits[name, example.split].append(example)
    for setting, trained in {run.setting: run.dataset for run in planned.runs}.items():
        for name in planned.benchmarks[setting]:
            if said and {name, trained} <= toys.keys():
                made = overlap(splits[trained, "train"], splits[name, "test"])
                if said[setting][name] != made:
                    yield f"{archived.name(path)}: that of {setting} and {name} is not the data's"
