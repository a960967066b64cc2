"""The checks that a reviewer makes of an archive: `mcgrpo verify ARCHIVE`, a line for each, the verdict last.

An archive may be anybody's: nothing in it runs, names a path or a module, or takes more of the machine than
`mcgrpo.commands.evidence.limits` allows. Every byte is accounted for; advantages are computed again from rewards, and
plan, scores, summary, tables and claims from grades and metrics; runs of unknown code and whatever is missing are
named. Everything happens in a temporary folder. The exit code is 1 if anything failed.
"""

import contextlib
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from mcgrpo import command_line
from mcgrpo.commands.evidence import contents, regenerate
from mcgrpo.commands.evidence import limits as bounds
from mcgrpo.commands.evidence.check import Check, failed, judged
from mcgrpo.commands.evidence.contents import NO_FILE, OF_THE_PAPER, STUDY, planned_files
from mcgrpo.commands.evidence.limits import Limits, bounded
from mcgrpo.commands.evidence.manifest import MANIFEST, SUMS, installed, read_manifest, run_outcomes, sums
from mcgrpo.commands.evidence.study import layer_differences, read_config, read_plan
from mcgrpo.commands.evidence.trainings import check_problems, check_rollouts
from mcgrpo.commands.evidence.unpack import Unpacked, printable, unpack
from mcgrpo.study.paths import StudyFiles

NEEDED = ("manifest", "study")
"""Checks that read what the others need."""


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
        fine = f"{len(unpacked.files)} files and nothing else"
        yield judged("archive", fine, "not as it was written", [unpacked.fault] if unpacked.fault else [])
        if unpacked.fault:
            return
        size = sum(entry.size for entry in unpacked.files.values()) / bounds.MIB
        for topic, check in Archived(unpacked, Path(folder, "made"), partial, regrade, limits).checks():
            try:
                with bounded(limits.seconds + 5 * size), contextlib.ExitStack() as stack:
                    if topic == "grades":
                        stack.enter_context(bounded(limits.grading_seconds + 30 * size, grading=True))
                    result = check()
            except (Exception, SystemExit) as error:  # whatever a file that was tampered with may lead to
                yield failed(topic, error, unpacked.folder)
                if topic in NEEDED or isinstance(error, bounds.TookTooLongError | MemoryError):
                    return
            else:
                yield result


class Archived:
    """An unpacked archive and its checks; those of `NEEDED` set its manifest, its study and what that plans."""

    def __init__(self, unpacked: Unpacked, made: Path, partial: bool, regrade: bool, limits: Limits):
        self.files, self.folder = unpacked.files, unpacked.folder
        self.made, self.partial, self.regrade, self.limits = made, partial, regrade, limits

    def checks(self) -> Iterator[tuple[str, Callable[[], Check]]]:
        """Topic and check, each to be made before the next one is asked for."""
        for check in (self.manifest, self.hashes, self.version, self.study, self.complete, self.commits):
            yield {"hashes": "files"}.get(check.__name__, check.__name__), check
        study = (self.folder, self.config, self.planned)
        yield "rollouts", partial(check_rollouts, *study, self.partial)
        for topic, step in {**({"grades": regenerate.make_grades} if self.regrade else {}), **regenerate.STEPS}.items():
            yield topic, partial(self.step, topic, step)
        yield "problems", partial(check_problems, *study, self.made, self.partial)
        yield "again", self.again

    def manifest(self) -> Check:
        """The manifest's own hash stands in SHA256SUMS, beside all others."""
        self.listed = read_manifest(self.folder / MANIFEST)
        own = self.files[MANIFEST].sha256
        wanted = sums({**self.listed.hashes, MANIFEST: own})
        written = (self.folder / SUMS).read_bytes() if SUMS in self.files else b""
        odd = sorted({*wanted.splitlines()} ^ {*written.splitlines()}) or ([b""] if wanted != written else [])
        names = dict.fromkeys(line.decode(errors="replace")[66:] or "its layout" for line in odd)
        culprits = [f"{name}: {SUMS} and {MANIFEST} say different things" for name in names]
        return judged("manifest", f"study {self.listed.study}, {len(self.listed.files)} files, sha256 {own}",
                      f"{MANIFEST} and {SUMS} do not agree", culprits)  # fmt: skip

    def hashes(self) -> Check:
        """Every file that the manifest lists is there with its hash, and no other."""
        listed, there = self.listed.files, set(self.files) - {MANIFEST, SUMS}
        culprits = [f"{name}: missing from the archive" for name in listed if name not in there]
        culprits += [f"{name}: not in the manifest" for name in sorted(there - listed.keys())]
        for name in sorted(there & listed.keys()):
            file, entry = self.files[name], listed[name]
            if file.size != entry["size"]:
                culprits.append(f"{name}: {file.size} bytes, {entry['size']} in the manifest")
            elif file.sha256 != entry["sha256"]:
                culprits.append(f"{name}: not the SHA-256 of the manifest")
        return judged("files", f"{len(there)} hashes are right", f"{len(culprits)} of {len(listed)} files", culprits)

    def version(self) -> Check:
        """Whether the code here is that of the archive; other code that makes the same tables is no failure."""
        theirs, ours = self.listed.made_by, installed()
        version, here = (each.get("versions", {}).get("mcgrpo") for each in (theirs, ours))
        get = f"the archive's: commit {theirs.get('commit')}"
        if version != here:
            return Check("version", f"made by mcgrpo {version}, this is {here}", (get,), "FAILED")
        stages, packages = theirs.get("stages", {}), theirs["versions"]
        odd = [f"{stage}: other code here" for stage, each in ours["stages"].items() if stages.get(stage) != each]
        odd += [f"{name}: {packages.get(name)} there, {each} here"
                for name, each in ours["versions"].items() if packages.get(name) != each]  # fmt: skip
        if odd:
            return Check("version", "not quite what made the tables", (*odd, get), "note")
        return Check("version", f"mcgrpo {here} and what it needs, as where the tables were made")

    def study(self) -> Check:
        """The study is what its files, merged and pinned, amount to; the paper's numbers are ours."""
        self.config = read_config(self.folder, self.listed, self.limits)
        self.planned = read_plan(self.config)
        names = self.listed.study_files
        if len({*names}) < len(names) or not all(name in self.files and name.startswith("study/") for name in names):
            told = f"{MANIFEST}: study_files are not in the archive, or listed twice"
            return Check("study", "not that of its files", (told,), "FAILED")
        keys = layer_differences(self.folder, self.listed, self.config)
        culprits = [f"{STUDY}: {key} is not what the study files say" for key in keys]
        for name, ours in OF_THE_PAPER.items():
            if not (self.folder / name).is_file() or (self.folder / name).read_bytes() != ours.read_bytes():
                culprits.append(f"{name}: not that of this mcgrpo, whose numbers and claims of the paper are taken")
        listed = ", ".join(name.removeprefix("study/") for name in names)
        return judged("study", f"{self.config['study']}: {listed}", "not that of its files", culprits)

    def complete(self) -> Check:
        """Nothing that was planned is missing, by the manifest or by what is there; and nothing else is there."""
        kinds, runs = planned_files(self.config, self.planned), self.planned["runs"]
        there = [name for name in self.files if name not in (MANIFEST, SUMS)]
        odd = contents.strangers(there, self.config, self.planned, self.listed.study_files)
        absent = contents.not_there(self.planned, StudyFiles(self.config["study"], self.folder).results.folder)
        lacking = [*self.listed.missing, *(line.removeprefix(f"{self.folder}/") for line in absent)]
        needed = [name for name, kind in kinds.items() if kind not in ("text", "unfinished")]
        lacking = list(dict.fromkeys([*lacking, *(f"{name}{NO_FILE}" for name in needed if name not in self.files)]))
        trainings = len(contents.training_names(self.planned))
        fine = f"{trainings} trainings and {len(runs) - trainings} untrained, nothing missing"
        if lacking and self.partial and not odd:
            return Check("complete", f"{len(lacking)} missing", tuple(lacking), "note")
        bad = f"{len(lacking)} missing" if lacking else f"{len(odd)} files too many"
        return judged("complete", fine, bad, [*lacking, *(f"{name}: nothing that the study plans" for name in odd)])

    def commits(self) -> Check:
        """Every training is of a known commit, and the manifest says which."""
        files = {name: self.folder / name for name in self.files}
        outcomes = run_outcomes(self.planned, files, StudyFiles(self.config["study"]).results)
        commits = {name: str(outcome.get("commit")) for name, outcome in outcomes.items()}
        culprits = [f"{name}: {commit}" for name, commit in commits.items() if commit.endswith("-dirty")]
        culprits += [f"{name}: no commit" for name, commit in commits.items() if commit == "None"]
        counts = Counter(commits.values())
        if counts != self.listed.commits:
            culprits.append(f"{MANIFEST}: its commits are not those of the runs")
        listed = ", ".join(f"{count} of {commit}" for commit, count in sorted(counts.items())) or "none"
        check = judged("commits", f"trainings: {listed}", f"{len(culprits)} runs of unknown code", culprits)
        return Check(check.topic, check.finding, (), "note") if check.status == "ok" and len(counts) > 1 else check

    def step(self, topic: str, step: regenerate.Step) -> Check:
        """What a step makes, after those before it, is in the archive, the same to the byte.

        A step that makes nothing has failed, unless the study plans nothing for it. Of an unfinished study, what its
        archive lacks is left out.
        """
        before = set(self.made.rglob("*"))
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                step(self.folder, self.config, self.planned, self.made)
        except (ValueError, LookupError, TypeError, SystemExit) as error:
            return failed(topic, error, self.folder, "cannot be made again")
        names = sorted(str(path.relative_to(self.made)) for path in {*self.made.rglob("*")} - before if path.is_file())
        if not names and topic == "flips" and not self.planned["flips"]:
            return Check(topic, "the study plans none")
        if not names:
            told = ("the archive holds nothing that it is made of",)
            return Check(topic, "nothing could be made again", told, "note" if self.partial else "FAILED")
        if self.partial:
            names = [name for name in names if name in self.files]
        odds = {name: difference(self.made / name, self.folder / name) for name in names}
        culprits = [f"{name}: {odd}" for name, odd in odds.items() if odd]
        listed = ", ".join(Path(name).name for name in names) if len(names) < 5 else f"{len(names)} files"
        fine = f"made again, the same to the byte: {listed}"
        return judged(topic, fine, f"{len(culprits)} of {len(names)} come out otherwise", culprits)

    def again(self) -> Check:
        """Everything that can be made again has been."""
        kinds = ("made", "grades") if self.regrade else ("made",)
        wanted = [name for name, kind in planned_files(self.config, self.planned).items() if kind in kinds]
        left = [f"{name}: was not made again" for name in wanted if not (self.made / name).is_file()]
        bad = f"{len(left)} of {len(wanted)} files"
        if left and self.partial:
            return Check("again", f"{bad} were not made again", tuple(left), "note")
        return judged("again", f"all {len(wanted)} files that can be made again have been", bad, left)


def difference(made: Path, archived: Path) -> str:
    """How an archived file differs from the one that was made again; empty where it does not."""
    if not archived.is_file():
        return "not in the archive"
    one, other = made.read_bytes(), archived.read_bytes()
    if one == other:
        return ""
    lines = zip(one.split(b"\n"), other.split(b"\n"), strict=False)
    number = next((number for number, (a, b) in enumerate(lines, 1) if a != b), None)
    return f"line {number} differs" if number else "one is longer"


def main() -> None:
    """Check an archive of `mcgrpo bundle`, also from an untrusted source."""
    parser = command_line.parser(main.__doc__)
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
    archive, notes = printable(str(options.archive)), ", ".join(topics["note"])
    verified = f"verified (notes: {notes})" if notes else "verified"
    print(f"{archive}: {'FAILED: ' + ', '.join(topics['FAILED']) if topics['FAILED'] else verified}")
    sys.exit(bool(topics["FAILED"]))


if __name__ == "__main__":
    main()
