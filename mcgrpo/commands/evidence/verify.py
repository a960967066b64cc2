"""The checks that a reviewer makes of an archive: `mcgrpo verify ARCHIVE`, a line for each, the verdict last.

An archive may be anybody's: nothing in it runs, names a path or a module, or takes more of the machine than
`mcgrpo.commands.evidence.limits` allows. Every byte is accounted for; advantages are computed again from rewards, and
plan, scores, summary, tables and claims from grades and metrics; runs of unknown code and whatever is missing are
named. Everything happens in a temporary folder. The exit code is 1 if anything failed.
"""

import argparse
import contextlib
import functools
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcgrpo.commands.evidence import limits as bounds
from mcgrpo.commands.evidence import regenerate
from mcgrpo.commands.evidence.archived_study import layer_differences, read_config, read_plan
from mcgrpo.commands.evidence.check import Check, failed, judged
from mcgrpo.commands.evidence.contents import CLAIMS, NO_FILE, PUBLISHED, STUDY, flips, not_there, results
from mcgrpo.commands.evidence.limits import Limits, bounded_grading, bounded_time
from mcgrpo.commands.evidence.manifest import MANIFEST, SUMS, Manifest, installed, read_manifest, run_outcomes, sums
from mcgrpo.commands.evidence.planned_files import Known, made_again, required
from mcgrpo.commands.evidence.trainings import check_problems, check_rollouts
from mcgrpo.commands.evidence.unpack import Unpacked, printable, unpack
from mcgrpo.files import RecordError
from mcgrpo.study.check import StudyError
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config
from mcgrpo.study.read import ROOT

NEEDED = ("manifest", "study")
"""Checks that find out what the others are of."""


@dataclass
class Archived:
    """An archive as far as it has been believed: its files, its manifest, its study and what that plans."""

    unpacked: Unpacked
    manifest: Manifest
    config: Config
    planned: dict[str, Any]
    partial: bool

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.unpacked.folder


def verify(
    archive: Path, partial: bool = False, regrade: bool = False, limits: Limits | None = None
) -> Iterator[Check]:
    """Every check of an archive, until one leaves nothing to check; to be called in a process's main thread.

    Args:
        archive: what `mcgrpo bundle` wrote.
        partial: whether a study may be unfinished.
        regrade: whether grades are made again from the completions in the archive.
        limits: how large it may be, and what its checks may take.

    Raises:
        OSError: for an archive that cannot be opened.
    """
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="mcgrpo-verify-") as folder:
        unpacked = unpack(archive, Path(folder, "content"), limits)
        found = f"{len(unpacked.files)} files and nothing else"
        yield judged("archive", found, "not as it was written", [unpacked.fault] if unpacked.fault else [])
        if unpacked.fault:
            return
        size = sum(entry.size for entry in unpacked.files.values()) / bounds.MIB
        for topic, check in _Checks(unpacked, Path(folder, "made"), partial, regrade, limits).all():
            try:
                with bounded_time(limits.seconds + 5 * size), contextlib.ExitStack() as stack:
                    if topic == "grades":
                        stack.enter_context(bounded_grading(limits.grading_seconds + 30 * size))
                    result = check()
            except (Exception, SystemExit) as error:  # whatever a file that was tampered with may lead to
                yield failed(topic, error, unpacked.folder)
                if topic in NEEDED or isinstance(error, bounds.TookTooLongError | MemoryError):
                    return
            else:
                yield result


class _Checks:
    """The checks of an unpacked archive; those of `NEEDED` find out what the others are of."""

    def __init__(self, unpacked: Unpacked, made: Path, partial: bool, regrade: bool, limits: Limits):
        self.unpacked, self.made, self.partial, self.regrade, self.limits = unpacked, made, partial, regrade, limits

    def all(self) -> Iterator[tuple[str, Callable[[], Check]]]:
        """Topic and check, each to be made before the next one is asked for."""
        yield "manifest", self._manifest
        yield "files", lambda: check_files(self.unpacked, self.manifest)
        yield "version", lambda: check_version(self.manifest)
        yield "study", self._study
        study = self.archived
        yield "complete", lambda: check_complete(study)
        yield "commits", lambda: check_commits(study)
        yield "rollouts", lambda: check_rollouts(study.folder, study.config, study.planned, self.partial)
        steps = {**({"grades": regenerate.make_grades} if self.regrade else {}), **regenerate.STEPS}
        for topic, step in steps.items():
            yield topic, functools.partial(check_step, topic, step, study, self.made)
        yield "problems", lambda: check_problems(study.folder, study.config, study.planned, self.made, self.partial)
        yield "again", lambda: check_all_made(study, self.made, self.regrade)

    def _manifest(self) -> Check:
        self.manifest = read_manifest(self.unpacked.folder / MANIFEST)
        return check_sums(self.unpacked, self.manifest)

    def _study(self) -> Check:
        config = read_config(self.unpacked.folder, self.manifest, self.limits)
        self.archived = Archived(self.unpacked, self.manifest, config, read_plan(config), self.partial)
        return check_study(self.archived)


def check_sums(unpacked: Unpacked, manifest: Manifest) -> Check:
    """The manifest's own hash stands in SHA256SUMS, beside all others."""
    own = unpacked.files[MANIFEST].sha256
    wanted = sums({**manifest.hashes, MANIFEST: own})
    found = (unpacked.folder / SUMS).read_bytes() if SUMS in unpacked.files else b""
    odd = sorted({*wanted.splitlines()} ^ {*found.splitlines()}) or ([b""] if wanted != found else [])
    names = dict.fromkeys(line.decode(errors="replace")[66:] or "its layout" for line in odd)
    culprits = [f"{name}: {SUMS} and {MANIFEST} say different things" for name in names]
    return judged("manifest", f"study {manifest.study}, {len(manifest.files)} files, sha256 {own}",
                  f"{MANIFEST} and {SUMS} do not agree", culprits)  # fmt: skip


def check_files(unpacked: Unpacked, manifest: Manifest) -> Check:
    """Every file that the manifest lists is there with its hash, and no other."""
    there = set(unpacked.files) - {MANIFEST, SUMS}
    culprits = [f"{name}: missing from the archive" for name in manifest.files if name not in there]
    culprits += [f"{name}: not in the manifest" for name in sorted(there - manifest.files.keys())]
    for name in sorted(there & manifest.files.keys()):
        found, listed = unpacked.files[name], manifest.files[name]
        if found.size != listed["size"]:
            culprits.append(f"{name}: {found.size} bytes, {listed['size']} in the manifest")
        elif found.sha256 != listed["sha256"]:
            culprits.append(f"{name}: not the SHA-256 of the manifest")
    return judged(
        "files", f"{len(there)} hashes are right", f"{len(culprits)} of {len(manifest.files)} files", culprits
    )


def check_version(manifest: Manifest) -> Check:
    """Whether the code here is that of the archive; other code that makes the same tables is no failure."""
    theirs, ours = manifest.made_by, installed()
    version, here = (each.get("versions", {}).get("mcgrpo") for each in (theirs, ours))
    get = f"the archive's: commit {theirs.get('commit')}"
    if version != here:
        return Check("version", f"made by mcgrpo {version}, this is {here}", (get,), "FAILED")
    stages = theirs.get("stages", {})
    odd = [f"{stage}: other code here" for stage, each in ours["stages"].items() if stages.get(stage) != each]
    for name, each in ours["versions"].items():
        if (other := theirs["versions"].get(name)) != each:
            odd.append(f"{name}: {other} there, {each} here")
    if odd:
        return Check("version", "not quite what made the tables", (*odd, get), "note")
    return Check("version", f"mcgrpo {here} and what it needs, as where the tables were made")


def check_study(archived: Archived) -> Check:
    """The study is what its files, laid over one another and pinned, amount to; the paper's numbers are those here."""
    folder, manifest, config = archived.folder, archived.manifest, archived.config
    strangers = [name for name in manifest.study_files if name not in archived.unpacked.files]
    if strangers or not all(name.startswith("study/") for name in manifest.study_files):
        return Check("study", "not that of its files", (f"{MANIFEST}: study_files are not in the archive",), "FAILED")
    culprits = [
        f"{STUDY}: {key} is not what the study files say" for key in layer_differences(folder, manifest, config)
    ]
    for name in (PUBLISHED, CLAIMS):
        if not (folder / name).is_file() or (folder / name).read_bytes() != (ROOT / name).read_bytes():
            culprits.append(f"{name}: not that of this checkout, whose numbers and claims of the paper are taken")
    names = ", ".join(name.removeprefix("study/") for name in manifest.study_files)
    return judged("study", f"{config['study']}: {names}", "not that of its files", culprits)


def check_complete(archived: Archived) -> Check:
    """Nothing that was planned is missing, by the manifest or by what is there; and nothing else is there."""
    folder, manifest, config, planned = archived.folder, archived.manifest, archived.config, archived.planned
    known, there = Known(config, planned, manifest.study_files), archived.unpacked.files
    strangers = [f"{name}: nothing that the study plans" for name in there if name not in (MANIFEST, SUMS)]
    strangers = [line for line in strangers if line.rpartition(": ")[0] not in known]
    found = [line.removeprefix(f"{folder}/") for line in not_there(planned, folder / results(config))]
    found += [f"{name}{NO_FILE}" for name in required(config, planned) if name not in there]
    lacking = list(dict.fromkeys([*manifest.missing, *found]))
    trainings = sum(run["method"] != "none" for run in planned["runs"])
    fine = f"{trainings} trainings and {len(planned['runs']) - trainings} untrained, nothing missing"
    if lacking and archived.partial and not strangers:
        return Check("complete", f"{len(lacking)} missing", tuple(lacking), "note")
    bad = f"{len(lacking)} missing" if lacking else f"{len(strangers)} files too many"
    return judged("complete", fine, bad, [*lacking, *strangers])


def check_commits(archived: Archived) -> Check:
    """Every training is of a known commit, and the manifest says which."""
    files = {name: archived.folder / name for name in archived.unpacked.files}
    found = run_outcomes(archived.planned, files, StudyFiles(archived.config["study"]).results)
    commits = {name: str(outcome.get("commit")) for name, outcome in found}
    culprits = [f"{name}: {commit}" for name, commit in commits.items() if commit.endswith("-dirty")]
    culprits += [f"{name}: no commit" for name, commit in commits.items() if commit == "None"]
    counts = Counter(commits.values())
    if counts != archived.manifest.commits:
        culprits.append(f"{MANIFEST}: its commits are not those of the runs")
    listed = ", ".join(f"{count} of {commit}" for commit, count in sorted(counts.items())) or "none"
    check = judged("commits", f"trainings: {listed}", f"{len(culprits)} runs of unknown code", culprits)
    return Check(check.topic, check.finding, (), "note") if check.status == "ok" and len(counts) > 1 else check


def check_step(topic: str, step: regenerate.Step, archived: Archived, made: Path) -> Check:
    """What a step makes, after those before it, is in the archive, the same to the byte.

    A step that makes nothing has failed, unless the study plans nothing for it. Of an unfinished study, what its
    archive lacks is left out.
    """
    before = set(made.rglob("*"))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            step(archived.folder, archived.config, archived.planned, made)
    except (RecordError, StudyError, ValueError, LookupError, TypeError, SystemExit) as error:
        return failed(topic, error, archived.folder, "cannot be made again")
    names = sorted(str(path.relative_to(made)) for path in set(made.rglob("*")) - before if path.is_file())
    if not names and topic == "flips" and not any(flips(archived.planned)):
        return Check(topic, "the study plans none")
    if not names:
        finding, told = "nothing could be made again", ("the archive holds nothing that it is made of",)
        return Check(topic, finding, told, "note" if archived.partial else "FAILED")
    if archived.partial:
        names = [name for name in names if name in archived.unpacked.files]
    culprits = [f"{name}: {odd}" for name in names if (odd := difference(made / name, archived.folder / name))]
    listed = ", ".join(Path(name).name for name in names) if len(names) < 5 else f"{len(names)} files"
    fine = f"made again, the same to the byte: {listed}"
    return judged(topic, fine, f"{len(culprits)} of {len(names)} come out otherwise", culprits)


def check_all_made(archived: Archived, made: Path, regrade: bool) -> Check:
    """Everything that can be made again has been."""
    wanted = list(made_again(archived.config, archived.planned, regrade))
    left = [f"{name}: was not made again" for name in wanted if not (made / name).is_file()]
    if left and archived.partial:
        return Check("again", f"{len(left)} of {len(wanted)} files were not made again", tuple(left), "note")
    return judged("again", f"all {len(wanted)} files that can be made again have been",
                  f"{len(left)} of {len(wanted)} files", left)  # fmt: skip


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


def main() -> None:
    """Check an archive of `mcgrpo bundle`, which may be anybody's."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--partial", action="store_true", help="a study may be unfinished: what is missing is named")
    parser.add_argument("--regrade", action="store_true", help="grade the completions in the archive again")
    bounds.add_arguments(parser)
    options = parser.parse_args()
    limits = bounds.limits_of(options)
    bounds.bound_memory(limits)
    topics: dict[str, list[str]] = {"ok": [], "note": [], "FAILED": []}
    try:
        for check in verify(options.archive, options.partial, options.regrade, limits):
            print(check, flush=True)
            topics[check.status].append(check.topic)
    except OSError as error:
        sys.exit(f"error: {options.archive}: {error.strerror}")
    print(verdict(options.archive, topics))
    sys.exit(bool(topics["FAILED"]))


def verdict(archive: Path, topics: Mapping[str, list[str]]) -> str:
    """The last line: what failed, or that nothing did."""
    if topics["FAILED"]:
        return f"{archive}: FAILED: {', '.join(topics['FAILED'])}"
    return f"{printable(str(archive))}: verified" + (f" (notes: {', '.join(topics['note'])})" if topics["note"] else "")


if __name__ == "__main__":
    main()
