"""The checks that a reviewer makes of an archive: `mcgrpo verify ARCHIVE`, a line for each, the verdict last.

Every byte is accounted for; plan, scores, summary, tables and claims are made again from the grades and metrics in the
archive, and must come out the same to the byte; runs of unknown code and whatever is missing are named. Everything
happens in a temporary folder. The exit code is 1 if anything failed.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcgrpo.evidence import regenerate
from mcgrpo.evidence.archive import Unpacked, sha256, unpack
from mcgrpo.evidence.contents import NO_FILE, STUDY, not_there, results
from mcgrpo.evidence.manifest import MANIFEST, SUMS, Manifest, installed, read_manifest, run_outcomes, sums
from mcgrpo.evidence.rollouts import GROUPS, disagreements
from mcgrpo.files import RecordError, as_record, read_json
from mcgrpo.lock import lock_file, pin, read_lock
from mcgrpo.records import Run
from mcgrpo.study_file import merged

SHOWN = 20
"""Culprits of one check that are printed."""


@dataclass(frozen=True)
class Check:
    """One line: what was looked at and what was found; with every culprit on a line of its own below."""

    topic: str
    finding: str
    culprits: tuple[str, ...] = ()
    status: Literal["ok", "note", "FAILED"] = "ok"

    def __str__(self) -> str:
        more = len(self.culprits) - SHOWN
        below = [*self.culprits[:SHOWN], *([f"... and {more} more"] if more > 0 else [])]
        return "\n".join([f"{self.status:7}{self.topic:9} {self.finding}", *(f"{'':17}{line}" for line in below)])


def judged(topic: str, fine: str, bad: str, culprits: list[str]) -> Check:
    """Fine where there are no culprits."""
    return Check(topic, bad, tuple(culprits), "FAILED") if culprits else Check(topic, fine)


def verify(archive: Path, partial: bool = False, regrade: bool = False) -> Iterator[Check]:
    """Every check of an archive, until one leaves nothing to check.

    Args:
        archive: what `mcgrpo bundle` wrote.
        partial: whether a study may be unfinished.
        regrade: whether grades are made again from the completions in the archive.

    Raises:
        OSError: for an archive that cannot be opened.
    """
    with tempfile.TemporaryDirectory(prefix="mcgrpo-verify-") as folder:
        unpacked = unpack(archive, Path(folder))
        yield judged(
            "archive", f"{len(unpacked.names)} files and nothing else", "not as it was written", unpacked.faults
        )
        try:
            manifest = read_manifest(unpacked.folder / MANIFEST)
        except RecordError as error:
            yield Check("manifest", "cannot be read", (str(error).removeprefix(f"{unpacked.folder}/"),), "FAILED")
            return
        yield check_sums(unpacked, manifest)
        yield check_files(unpacked, manifest)
        try:
            yield check_version(manifest)
            config = read_json(unpacked.folder / STUDY)
            planned = read_json(unpacked.folder / results(config) / "plan.json")
            yield check_study(unpacked.folder, manifest, config)
            yield check_complete(unpacked.folder, manifest, config, planned, partial)
            yield check_commits(unpacked.folder, manifest, config, planned)
        except Exception as error:  # whatever a file that was tampered with may lead to
            yield Check("contents", "cannot be read", (_told(error, unpacked.folder),), "FAILED")
            return
        yield check_rollouts(unpacked.folder, config, planned)
        lacking = {line.removesuffix(NO_FILE) for line in manifest.missing if line.endswith(NO_FILE)} if partial else ()
        steps = {**({"grades": regenerate.make_grades} if regrade else {}), **regenerate.STEPS}
        for topic, step in steps.items():
            yield check_step(topic, step, unpacked.folder, config, planned, Path(folder) / "made", lacking)


def check_sums(unpacked: Unpacked, manifest: Manifest) -> Check:
    """The manifest's own hash stands in SHA256SUMS, beside all others."""
    there = {name: unpacked.folder / name for name in (MANIFEST, SUMS) if name in unpacked.names}
    wanted = sums({**manifest.hashes, MANIFEST: sha256(there[MANIFEST])})
    found = there[SUMS].read_bytes() if SUMS in there else b""
    odd = sorted({*wanted.splitlines()} ^ {*found.splitlines()}) or ([b""] if wanted != found else [])
    names = dict.fromkeys(line.decode(errors="replace")[66:] or "its layout" for line in odd)
    culprits = [f"{name}: {SUMS} and {MANIFEST} say different things" for name in names]
    return judged("manifest", f"study {manifest.study}, {len(manifest.files)} files, sha256 {sha256(there[MANIFEST])}",
                  f"{MANIFEST} and {SUMS} do not agree", culprits)  # fmt: skip


def check_files(unpacked: Unpacked, manifest: Manifest) -> Check:
    """Every file that the manifest lists is there with its hash, and no other."""
    there = set(unpacked.names) - {MANIFEST, SUMS}
    culprits = [f"{name}: missing from the archive" for name in manifest.files if name not in there]
    culprits += [f"{name}: not in the manifest" for name in sorted(there - manifest.files.keys())]
    for name in sorted(there & manifest.files.keys()):
        path, entry = unpacked.folder / name, manifest.files[name]
        if path.stat().st_size != entry["size"]:
            culprits.append(f"{name}: {path.stat().st_size} bytes, {entry['size']} in the manifest")
        elif sha256(path) != entry["sha256"]:
            culprits.append(f"{name}: not the SHA-256 of the manifest")
    return judged(
        "files", f"{len(there)} hashes are right", f"{len(culprits)} of {len(manifest.files)} files", culprits
    )


def check_version(manifest: Manifest) -> Check:
    """Whether the code here is that of the archive; other code that makes the same tables is no failure."""
    theirs, ours = manifest.made_by, installed()
    version, here = (each.get("versions", {}).get("mcgrpo") for each in (theirs, ours))
    if version != here:
        return Check("version", f"made by mcgrpo {version}, this is {here}", (_get(theirs),), "FAILED")
    stages = theirs.get("stages", {})
    odd = [f"{stage}: other code here" for stage, each in ours["stages"].items() if stages.get(stage) != each]
    for name, each in ours["versions"].items():
        if (other := theirs["versions"].get(name)) != each:
            odd.append(f"{name}: {other} there, {each} here")
    if odd:
        return Check("version", "not quite what made the tables", (*odd, _get(theirs)), "note")
    return Check("version", f"mcgrpo {here} and what it needs, as where the tables were made")


def _get(theirs: dict[str, Any]) -> str:
    return f"the archive's: commit {theirs.get('commit')}"


def check_study(folder: Path, manifest: Manifest, config: dict[str, Any]) -> Check:
    """The study is what its files, laid over one another and pinned, amount to."""
    try:
        found, layers = merged([folder / name for name in manifest.study_files])
    except ModuleNotFoundError as error:
        return Check("study", f"whether {STUDY} is of its files was not looked at: no {error.name} here", (), "note")
    for file in reversed(layers):
        pin(found, read_lock(lock_file(file)))
    found = json.loads(json.dumps(found))
    odd = [key for key in {**found, **config} if found.get(key) != config.get(key)]
    names = ", ".join(name.removeprefix("study/") for name in manifest.study_files)
    culprits = [f"{STUDY}: {key} is not what the study files say" for key in odd]
    return judged("study", f"{config['study']}: {names}", "not that of its files", culprits)


def check_complete(
    folder: Path, manifest: Manifest, config: dict[str, Any], planned: dict[str, Any], partial: bool
) -> Check:
    """Nothing that was planned is missing, by the manifest or by what is there."""
    found = [line.removeprefix(f"{folder}/") for line in not_there(planned, folder / results(config))]
    lacking = list(dict.fromkeys([*manifest.missing, *found]))
    fine = f"{manifest.trainings} trainings and {len(planned['runs']) - manifest.trainings} untrained, nothing missing"
    check = judged("complete", fine, f"{len(lacking)} missing", lacking)
    return Check(check.topic, check.finding, check.culprits, "note") if lacking and partial else check


def check_commits(folder: Path, manifest: Manifest, config: dict[str, Any], planned: dict[str, Any]) -> Check:
    """Every training is of a known commit, and the manifest says which."""
    files = {name: folder / name for name in manifest.files}
    found = run_outcomes(planned, files, f"{results(config)}/runs")
    commits = {name: str(outcome.get("commit")) for name, outcome in found}
    culprits = [f"{name}: {commit}" for name, commit in commits.items() if commit.endswith("-dirty")]
    culprits += [f"{name}: no commit" for name, commit in commits.items() if commit == "None"]
    counts = Counter(commits.values())
    if counts != manifest.commits:
        culprits.append(f"{MANIFEST}: its commits are not those of the runs")
    listed = ", ".join(f"{count} of {commit}" for commit, count in sorted(counts.items())) or "none"
    check = judged("commits", f"trainings: {listed}", f"{len(culprits)} runs of unknown code", culprits)
    return Check(check.topic, check.finding, (), "note") if check.status == "ok" and len(counts) > 1 else check


def check_rollouts(folder: Path, config: dict[str, Any], planned: dict[str, Any]) -> Check:
    """What metrics say of rewards and advantages is what `groups.jsonl` says; older trainings have no such file."""
    base = folder / results(config) / "runs"
    try:
        runs = [as_record(Run, row, "plan") for row in planned["runs"]]
        there = [run for run in runs if (base / run.name).is_dir()]
        if not any((base / run.name / GROUPS).is_file() for run in there):
            return Check("rollouts", "no rewards and advantages were recorded", (), "note")
        culprits = [line for run in there for line in disagreements(base / run.name, run)]
    except Exception as error:
        return Check("rollouts", "cannot be read", (_told(error, folder),), "FAILED")
    told = "mean reward, unscored rollouts, largest advantage and share of zeros agree with metrics"
    fine = f"{told}, G are kept: {len(there)} trainings"
    return judged("rollouts", fine, f"{len(culprits)} disagreements with metrics",
                  [line.removeprefix(f"{folder}/") for line in culprits])  # fmt: skip


def check_step(
    topic: str,
    step: regenerate.Step,
    folder: Path,
    config: dict[str, Any],
    planned: dict[str, Any],
    made: Path,
    lacking: Collection[str] = (),
) -> Check:
    """What a step makes, after those before it, is in the archive, the same to the byte; or not in it and `lacking`."""
    before = set(made.rglob("*"))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            step(folder, config, planned, made)
    except (Exception, SystemExit) as error:
        return Check(topic, "cannot be made again", (_told(error, folder),), "FAILED")
    new = sorted(path for path in set(made.rglob("*")) - before if path.is_file())
    names = {str(path.relative_to(made)): path for path in new}
    names = {name: path for name, path in names.items() if name not in lacking or (folder / name).exists()}
    culprits = [f"{name}: {odd}" for name, path in names.items() if (odd := difference(path, folder / name))]
    listed = ", ".join(Path(name).name for name in names) if len(names) < 5 else f"{len(names)} files"
    fine = f"made again, the same to the byte: {listed or 'there are none'}"
    return judged(topic, fine, f"{len(culprits)} of {len(names)} come out otherwise", culprits)


def difference(made: Path, archived: Path) -> str:
    """How an archived file differs from the one that was made again; empty where it does not."""
    if not archived.is_file():
        return "not in the archive"
    one, other = made.read_bytes(), archived.read_bytes()
    if one == other:
        return ""
    lines = zip(one.split(b"\n"), other.split(b"\n"), strict=False)
    place = next((number for number, (a, b) in enumerate(lines, 1) if a != b), None)
    return f"line {place} differs" if place else "one is longer"


def _told(error: BaseException, folder: Path) -> str:
    text = str(error).replace(f"{folder}/", "")
    return text if isinstance(error, RecordError | SystemExit) else f"{type(error).__name__}: {text}"


def main() -> None:
    """Check an archive of `mcgrpo bundle`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--partial", action="store_true", help="a study may be unfinished: what is missing is named")
    parser.add_argument("--regrade", action="store_true", help="grade the completions in the archive again")
    options = parser.parse_args()
    failed = []
    try:
        for check in verify(options.archive, options.partial, options.regrade):
            print(check, flush=True)
            failed += [check.topic] if check.status == "FAILED" else []
    except OSError as error:
        sys.exit(f"error: {options.archive}: {error.strerror}")
    if failed:
        print(f"{options.archive}: FAILED: {', '.join(failed)}")
    else:
        print(f"{options.archive}: verified")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
