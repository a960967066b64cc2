"""The checks that a reviewer makes of an archive: `mcgrpo verify ARCHIVE`, a line for each, the verdict last.

An archive may be anybody's: nothing in it runs, or names a path or a module. Advantages are computed again from
rewards, and plan, scores, summary, tables and claims from grades and metrics, by the code that is installed. Everything
happens in a temporary folder. The exit code is 1 if anything failed.
"""

import contextlib
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mcgrpo import command_line
from mcgrpo.commands.evidence import archive, regenerate
from mcgrpo.commands.evidence.advantages import disagreements, is_known
from mcgrpo.commands.evidence.bundle import missing, run_outcomes
from mcgrpo.commands.evidence.compare import difference
from mcgrpo.commands.evidence.contents import MANIFEST, STUDY, SUMS, planned_files, read_config
from mcgrpo.files import as_record, iter_json_lines, read_json
from mcgrpo.records import Run, run_name
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import GROUPS, RECORD, StudyFiles
from mcgrpo.study.plan import as_json
from mcgrpo.study.schedule import schedule

SHOWN = 20
"""Culprits of one check that are printed."""


class Check(NamedTuple):
    """What was looked at and what was found, with every culprit."""

    topic: str
    finding: str
    culprits: Sequence[str] = ()
    status: Literal["ok", "note", "FAILED"] = "ok"

    def __str__(self) -> str:
        more = len(self.culprits) - SHOWN
        below = [*self.culprits[:SHOWN], *([f"... and {more} more"] if more > 0 else [])]
        first = f"{self.status:7}{self.topic:9} {printable(self.finding)}"
        return "\n".join([first, *(f"{'':17}{printable(line)}" for line in below)])


def judged(topic: str, fine: str, bad: str, culprits: Sequence[str]) -> Check:
    """Fine where there are no culprits."""
    return Check(topic, bad, culprits, "FAILED") if culprits else Check(topic, fine)


def printable(text: str, length: int = 400) -> str:
    """A text of an archive for a terminal: one line, without control characters, and not too long."""
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text[:length])
    return shown + "..." * (len(text) > length)


def verify(path: Path, partial: bool = False, regrade: bool = False, most_mb: int = archive.MOST_MB) -> Iterator[Check]:
    """Every check of an archive, until one leaves nothing to check.

    Args:
        path: what `mcgrpo bundle` wrote.
        partial: whether a study may be unfinished.
        regrade: whether grades are made again from the completions in the archive.
        most_mb: MiB that it may unpack to.

    Raises:
        OSError: for an archive that cannot be opened.
    """
    with tempfile.TemporaryDirectory(prefix="mcgrpo-verify-") as folder:
        try:
            archive.unpack(path, Path(folder, "content"), most_mb)
        except archive.ArchiveError as error:
            yield Check("archive", "refused", (str(error),), "FAILED")
            return
        unpacked = Unpacked(Path(folder, "content"), Path(folder, "made"), partial)
        for topic, check in unpacked.checks(regrade):
            try:
                yield check()
            except (Exception, SystemExit) as error:  # whatever a file that was tampered with may lead to
                told = f"{type(error).__name__}: {error}".replace(f"{unpacked.folder}/", "")
                yield Check(topic, "cannot be read", (told,), "FAILED")
                if topic == "study":
                    return


class Unpacked:
    """An unpacked archive and its checks; `study` sets its manifest, its study and what that plans."""

    def __init__(self, folder: Path, made: Path, partial: bool):
        self.folder, self.made, self.partial = folder, made, partial
        self.names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def checks(self, regrade: bool) -> Iterator[tuple[str, Callable[[], Check]]]:
        """Topic and check, each to be made before the next one is asked for."""
        yield from (("files", self.hashes), ("study", self.study), ("complete", self.complete))
        yield from (("commits", self.commits), ("rollouts", self.rollouts))
        for topic, step in {**({"grades": regenerate.make_grades} if regrade else {}), **regenerate.STEPS}.items():
            yield topic, partial(self.step, topic, step)
        yield "problems", self.problems

    def hashes(self) -> Check:
        """SHA256SUMS lists every other file with its hash, and no more."""
        lines = (self.folder / SUMS).read_text(encoding="utf-8").splitlines()
        listed = {name: value for value, _, name in (line.partition("  ") for line in lines)}
        there = {name: archive.sha256(self.folder / name) for name in self.names if name != SUMS}
        told = {True: "not in the archive", False: f"not in {SUMS}, or not with this hash"}
        culprits = [f"{name}: {told[name not in there]}" for name in sorted({*listed, *there})
                    if listed.get(name) != there.get(name)]  # fmt: skip
        fine = f"{len(there)} hashes are right; {SUMS} has {archive.sha256(self.folder / SUMS)}"
        return judged("files", fine, f"{len(culprits)} files", culprits)

    def study(self) -> Check:
        """The study is one that this code would run."""
        self.manifest = read_json(self.folder / MANIFEST)
        self.config = read_config(self.folder / STUDY)
        self.planned: dict[str, Any] = json.loads(json.dumps(as_json(self.config)))
        finding = f"{self.config['study']}, packed by mcgrpo {self.manifest['mcgrpo']}"
        if self.same_version:
            return Check("study", finding)
        note = f"this is mcgrpo {version('mcgrpo')}: of tables only .csv files are compared, numbers within 1e-6"
        return Check("study", finding, (note,), "note")

    @property
    def same_version(self) -> bool:
        """Whether the archive was packed by the version that is installed."""
        return self.manifest["mcgrpo"] == version("mcgrpo")

    def complete(self) -> Check:
        """Nothing that was planned is missing, and nothing else is there."""
        planned = planned_files(self.config, self.planned)
        known = {MANIFEST, SUMS, STUDY, *planned}
        strangers = [f"{name}: nothing that the study plans" for name in self.names if name not in known]
        lacking = missing(self.config, self.planned, self.names, self.folder)
        if lacking and self.partial and not strangers:
            return Check("complete", f"{len(lacking)} missing", lacking, "note")
        fine = f"{len(self.planned['runs'])} runs, nothing missing and nothing else"
        bad = f"{len(lacking)} missing, {len(strangers)} too many"
        return judged("complete", fine, bad, [*lacking, *strangers])

    def commits(self) -> Check:
        """Every training is of a known commit."""
        outcomes = run_outcomes(self.planned, StudyFiles(self.config["study"], self.folder).results)
        commits = {name: str(outcome.get("commit")) for name, outcome in outcomes.items()}
        culprits = [f"{name}: {each}" for name, each in commits.items() if each.endswith("-dirty") or each == "None"]
        counts = Counter(commits.values())
        fine = ", ".join(f"{count} trainings of {each}" for each, count in sorted(counts.items())) or "no trainings"
        check = judged("commits", fine, f"{len(culprits)} trainings of unknown code", culprits)
        return check._replace(status="note") if check.status == "ok" and len(counts) > 1 else check

    def rollouts(self) -> Check:
        """Every training has taken the steps that are planned; advantages and kept rows follow from its rewards.

        Estimators of somebody's own are code, and are not run: their trainings are named.
        """
        findings, own, count = [], [], 0
        results = StudyFiles(self.config["study"], self.folder).results
        for run in (as_record(Run, row, "plan") for row in self.planned["runs"] if row["method"] != UNTRAINED):
            of_run = results.run(run.name)
            if not (of_run / RECORD).is_file() or not (of_run / GROUPS).is_file():
                continue  # which `complete` names
            count += 1
            own += [] if is_known(run) else [f"{run.name}: not computed again: {run.estimator} is the study's own code"]
            try:
                rows = read_json(of_run / RECORD)["outcome"]["data"]["rows"]
                planned = schedule(run, max(self.config.get("gpus", 0), 1), rows)
                findings += [f"{run.name}: {line}" for line in disagreements(of_run, run, planned)]
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                findings.append(f"{run.name}: cannot be read: {error}".replace(f"{of_run}/", ""))
        fine = f"{count} trainings: steps, advantages and kept rows are those of their rewards"
        check = judged("rollouts", fine, f"{len(findings)} disagreements", findings)
        return Check("rollouts", f"{count - len(own)} of {fine}", own, "note") if own and not findings else check

    def step(self, topic: str, step: regenerate.Step) -> Check:
        """What a step makes, after those before it, is in the archive; of an unfinished study, as far as it goes."""
        before = set(self.made.rglob("*"))
        with contextlib.redirect_stdout(io.StringIO()):
            step(self.folder, self.config, self.planned, self.made)
        found = [path for path in {*self.made.rglob("*")} - before if path.is_file() and path.suffix != ".sha256"]
        names = sorted(str(path.relative_to(self.made)) for path in found)
        if not names and (topic != "flips" or self.planned["flips"]):
            told = ("the archive holds nothing that it is made of",)
            return Check(topic, "nothing could be made again", told, "note" if self.partial else "FAILED")
        culprits = []
        for name in names:
            if self.partial and name not in self.names:
                continue
            if odd := difference(self.made / name, self.folder / name, self.same_version):
                culprits.append(f"{name}: {odd}")
        return judged(topic, f"{len(names)} files, made again", f"{len(culprits)} of {len(names)} differ", culprits)

    def problems(self) -> Check:
        """Every score is over all problems of its benchmark, by the benchmark's audit."""
        files, made = (StudyFiles(self.config["study"], folder) for folder in (self.folder, self.made))
        counted = {(run_name(row), row["benchmark"], row["measure"]): row["n"]
                   for _, row in iter_json_lines(made.results.scores)}  # fmt: skip
        wanted = {}
        for run, benchmarks in self.planned["evaluations"].items():
            for benchmark in benchmarks:
                rows = read_json(files.audit(benchmark))["splits"]["test"]["rows"]
                wanted |= {(run, benchmark, measure): rows for measure in self.planned["measures"]}
        culprits = [
            f"{run}: {measure} on {benchmark} is over {counted.get((run, benchmark, measure))} problems of {rows}"
            for (run, benchmark, measure), rows in wanted.items()
            if counted.get((run, benchmark, measure), rows if self.partial else None) != rows
        ]
        return judged("problems", "scores are over all problems", f"{len(culprits)} scores", culprits)


def main() -> None:
    """Check an archive of `mcgrpo bundle`, also from an untrusted source."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--partial", action="store_true", help="a study may be unfinished: what is missing is named")
    parser.add_argument("--regrade", action="store_true", help="grade the completions in the archive again")
    parser.add_argument("--max-mb", type=command_line.whole, default=archive.MOST_MB, metavar="N",
                        help="MiB that the archive may unpack to (default: %(default)s)")  # fmt: skip
    options = parser.parse_args()
    topics: dict[str, list[str]] = {"ok": [], "note": [], "FAILED": []}
    try:
        for check in verify(options.archive, options.partial, options.regrade, options.max_mb):
            print(check, flush=True)
            topics[check.status].append(check.topic)
    except OSError as error:
        sys.exit(f"error: {options.archive}: {error.strerror}")
    notes = f" (notes: {', '.join(topics['note'])})" if topics["note"] else ""
    verdict = f"FAILED: {', '.join(topics['FAILED'])}" if topics["FAILED"] else f"verified{notes}"
    print(f"{printable(str(options.archive))}: {verdict}")
    sys.exit(bool(topics["FAILED"]))


if __name__ == "__main__":
    main()
