"""MANIFEST.json, an archive's list of contents, and SHA256SUMS, which `sha256sum --check` reads."""

import json
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcgrpo.commands.evidence.archive import sha256
from mcgrpo.commands.evidence.contents import Contents, training_names
from mcgrpo.files import RecordError, as_record, read_json
from mcgrpo.study.fingerprint import fingerprint
from mcgrpo.study.paths import RECORD, ResultFiles, StudyFiles
from mcgrpo.study.plan import Config, title
from mcgrpo.train.provenance import commit

FORMAT = 1
"""Of the archive; a reader refuses any other."""
MANIFEST, SUMS = "MANIFEST.json", "SHA256SUMS"
STAGES = tuple(
    f"mcgrpo.{name}"
    for name in ("analyse.sign_flips", "analyse.collect", "analyse.summarise", "analyse.contrasts", "report.tables",
                 "report.claims")
)  # fmt: skip
"""What makes tables of grades and metrics."""
PACKAGES = ("mcgrpo", "numpy", "pandas", "scipy", "tabulate")
"""What else their bytes depend on."""


@dataclass(frozen=True)
class Manifest:
    """What an archive holds and where it is from; nothing in it depends on when it was made.

    `made_by` is the code that packed it (see `installed`), `commits` and `versions` those of the trainings with their
    numbers, `missing` what the study lacked, `files` the size and `sha256` of each file.
    """

    format: int
    study: str
    title: str
    study_files: list[str]
    made_by: dict[str, Any]
    trainings: int
    commits: dict[str, int]
    versions: list[dict[str, Any]]
    missing: list[str]
    files: dict[str, dict[str, Any]]

    def as_bytes(self) -> bytes:
        """The file."""
        return (json.dumps(asdict(self), indent=2) + "\n").encode()

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each file."""
        return {name: entry["sha256"] for name, entry in self.files.items()}


def installed() -> dict[str, Any]:
    """The code that runs here: commit, versions, and fingerprints of the stages that make tables."""
    return {
        "commit": commit(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "stages": {stage: fingerprint(stage) for stage in STAGES},
    }


def manifest(config: Config, planned: dict[str, Any], packed: Contents, own: Mapping[str, bytes]) -> Manifest:
    """The manifest of a study's files, and of those that are written for the archive alone (`own`)."""
    outcomes = run_outcomes(planned, packed.files, StudyFiles(config["study"]).results).values()
    packages = Counter(json.dumps(outcome.get("versions", {})) for outcome in outcomes)
    sizes = {name: path.stat().st_size for name, path in packed.files.items()}
    sizes |= {name: len(content) for name, content in own.items()}
    entries = {**packed.files, **own}
    return Manifest(
        format=FORMAT,
        study=config["study"],
        title=title(config),
        study_files=packed.study_files,
        made_by=installed(),
        trainings=len(training_names(planned)),
        commits=dict(sorted(Counter(str(outcome.get("commit")) for outcome in outcomes).items())),
        versions=[{"runs": runs, "versions": json.loads(each)} for each, runs in sorted(packages.items())],
        missing=packed.missing,
        files={name: {"size": sizes[name], "sha256": sha256(entries[name])} for name in sorted(entries)},
    )


def run_outcomes(planned: dict[str, Any], files: Mapping[str, Path], results: ResultFiles) -> dict[str, dict[str, Any]]:
    """Run -> the `outcome` of its run.json, for the trainings that have one.

    Raises:
        RecordError: for one that holds no JSON object.
    """
    records = {name: files.get(str(results.run(name) / RECORD)) for name in training_names(planned)}
    return {name: read_json(path).get("outcome", {}) for name, path in records.items() if path}


def sums(hashes: Mapping[str, str]) -> bytes:
    """The content of SHA256SUMS."""
    return "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes)).encode()


def read_manifest(path: Path) -> Manifest:
    """The manifest of an archive.

    Raises:
        RecordError: for another format, or a file that is no manifest.
    """
    row = read_json(path)
    if row.get("format") != FORMAT:
        raise RecordError(f"{path.name}: format {row.get('format')!r}; this mcgrpo reads format {FORMAT}")
    listed = as_record(Manifest, row, path.name)
    for name, entry in listed.files.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("size"), int) or "sha256" not in entry:
            raise RecordError(f"{path.name}: files: {name} should have its size and sha256")
    return listed
