"""The checks that a reviewer makes of an archive: `mcgrpo verify ARCHIVE`, a line for each, the verdict last.

An archive may be anybody's: nothing in it runs, or names a path or a module. Plan, scores, summary, tables and claims
are made again from grades and metrics by the code that is installed, in a temporary folder. The exit code is 1 if
anything failed.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Literal, NamedTuple

from mcgrpo import command_line
from mcgrpo.analyse.collect import Input, Results, collect
from mcgrpo.commands.evidence import archive, data, regenerate
from mcgrpo.commands.evidence.bundle import made_of, missing, outcomes
from mcgrpo.commands.evidence.compare import difference
from mcgrpo.commands.evidence.contents import FORMAT, MANIFEST, STUDY, SUMS, planned_files, read_config
from mcgrpo.files import RecordError, read_json
from mcgrpo.records import run_name
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import plan_of
from mcgrpo.sums import read_list, sha256, sums_of

SHOWN = 20
"""Culprits of one check that are printed."""

MEANING = (
    "Verified: plan, tables and claims follow from the grades and metrics, and these are of the study's problems.",
    "Not looked at: whether a model gave these completions and metrics, and whether the commits are those that ran.",
)
"""Printed before the verdict."""


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
        unpacked = Unpacked(Path(folder, "content"), Path(folder, "made"), partial)
        try:
            archive.unpack(path, unpacked.folder, most_mb)
        except archive.ArchiveError as error:
            yield Check("archive", "refused", (str(error),), "FAILED")
            return
        checks = [unpacked.files, unpacked.study, unpacked.complete, unpacked.manifest, unpacked.commits, unpacked.data,
                  unpacked.problems]  # fmt: skip
        for check in [*checks, *([unpacked.grades] if regrade else []), unpacked.tables]:
            try:
                yield check()
            except (Exception, SystemExit) as error:  # whatever a file that was tampered with may lead to
                told = f"{type(error).__name__}: {error}".replace(f"{unpacked.folder}/", "")
                yield Check(check.__name__, "cannot be read", (told,), "FAILED")
                if check == unpacked.study:
                    return


class Unpacked:
    """An unpacked archive and its checks, in their order; `study` sets its manifest, its study and what that plans."""

    def __init__(self, folder: Path, made: Path, partial: bool):
        self.folder, self.made, self.partial = folder, made, partial

    @cached_property
    def names(self) -> list[str]:
        """The files of the archive."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    @cached_property
    def collected(self) -> Results:
        """What its grades, flip rates and metrics amount to, and what is missing for it."""
        return collect(self.planned, self.there.results.folder, unfinished=True)

    def files(self) -> Check:
        """SHA256SUMS lists every other file with its hash, and no more."""
        listed, there = read_list(self.folder / SUMS), sums_of(self.folder)
        told = {True: "not in the archive", False: f"not in {SUMS}, or not with this hash"}
        culprits = [f"{name}: {told[name not in there]}" for name in sorted({*listed, *there})
                    if listed.get(name) != there.get(name)]  # fmt: skip
        fine = f"{len(there)} hashes are right; {SUMS} has {sha256(self.folder / SUMS)}"
        return judged("files", fine, f"{len(culprits)} files", culprits)

    def study(self) -> Check:
        """The study is one that this code would run."""
        self.packed = read_json(self.folder / MANIFEST)
        if (packed := self.packed.get("format", 1)) != FORMAT:
            commit = self.packed.get("commit")
            raise archive.ArchiveError(f"packed in format {packed}, not {FORMAT}: `mcgrpo verify` of {commit} reads it")
        self.config = read_config(self.folder / STUDY)
        self.planned = plan_of(self.config)
        self.kinds = planned_files(self.config, self.planned)
        self.there, self.again = (StudyFiles(self.config["study"], folder) for folder in (self.folder, self.made))
        finding = f"{self.config['study']}, packed by mcgrpo {self.packed['mcgrpo']}"
        if self.same_version:
            return Check("study", finding)
        note = f"this is mcgrpo {version('mcgrpo')}: of tables only .csv files are compared, numbers within 1e-6"
        return Check("study", finding, (note,), "note")

    @property
    def same_version(self) -> bool:
        """Whether the archive was packed by the version that is installed."""
        return self.packed["mcgrpo"] == version("mcgrpo")

    def complete(self) -> Check:
        """Nothing that was planned is missing, and nothing else is there."""
        known = {MANIFEST, SUMS, STUDY, *self.kinds}
        strangers = [f"{name}: nothing that the study plans" for name in self.names if name not in known]
        unfinished = [line.removeprefix(f"{self.folder}/") for line in self.collected.missing]
        lacking = missing(self.kinds, self.names, unfinished)
        if lacking and self.partial and not strangers:
            return Check("complete", f"{len(lacking)} missing", lacking, "note")
        fine = f"{len(self.planned.runs)} runs, nothing missing and nothing else"
        bad = f"{len(lacking)} missing, {len(strangers)} too many"
        return judged("complete", fine, bad, [*lacking, *strangers])

    def manifest(self) -> Check:
        """The manifest says of the trainings what their records say."""
        made = made_of(self.planned, self.there.results)
        odd = [f"{MANIFEST}: {key} is not that of the run.json files" for key in made if self.packed[key] != made[key]]
        return judged("manifest", f"{made['trainings']} trainings as in {MANIFEST}", f"{len(odd)} keys differ", odd)

    def commits(self) -> Check:
        """Every training is of a known commit, and the archive was packed by the commit of one."""
        found = outcomes(self.planned, self.there.results).items()
        commits = {name: str(outcome.commit) for name, outcome in found}
        culprits = [f"{name}: {each}" for name, each in commits.items() if each.endswith("-dirty") or each == "None"]
        counts = Counter(commits.values())
        fine = ", ".join(f"{count} trainings of {each}" for each, count in sorted(counts.items())) or "no trainings"
        check = judged("commits", fine, f"{len(culprits)} trainings of unknown code", culprits)
        packed = str(self.packed["commit"]).removesuffix("-dirty")
        others = [f"packed by another commit: {packed}"] if packed not in counts else []
        is_note = check.status == "ok" and (others or len(counts) > 1)
        return check._replace(status="note", culprits=others) if is_note else check

    def data(self) -> Check:
        """Audits, overlaps, golds and the data of trainings are those of the study, as far as these can be known."""
        inputs: list[Input] = []
        with suppress(RecordError):  # told by `complete`
            inputs = self.collected.inputs
        archived = data.Archived(self.config, self.planned, self.there, inputs, self.made / "data")
        found, fewer = [*data.faults(archived)], [*data.fewer(archived)]
        if fewer and not found:
            return Check("data", "fewer rows than the study would take", fewer, "note")
        return judged("data", "as the study and the golds have it", f"{len(found)} faults", found)

    def problems(self) -> Check:
        """Every score is over all problems of its benchmark, by the benchmark's audit."""
        counted = {(run_name(vars(score)), score.benchmark, score.measure): score.n for score in self.collected.scores}
        culprits = []
        for run, benchmarks in self.planned.evaluations.items():
            for benchmark in benchmarks:
                rows = read_json(self.there.audit(benchmark))["splits"]["test"]["rows"]
                for measure in self.planned.measures:
                    count = counted.get((run, benchmark, measure), rows if self.partial else None)
                    if count != rows:
                        culprits.append(f"{run}: {measure} on {benchmark} is over {count} problems of {rows}")
        return judged("problems", "scores are over all problems", f"{len(culprits)} scores", culprits)

    def grades(self) -> Check:
        """The grades are those of the completions in the archive."""
        regenerate.make_grades(self.config, self.planned, self.there, self.again)
        return self.compared("grades", "grades")

    def tables(self) -> Check:
        """Plan, flips, scores, summary, comparisons, signals, tables and claims are those of the grades and metrics."""
        regenerate.make_tables(self.config, self.planned, self.collected, self.there, self.again)
        return self.compared("tables", "made")

    def compared(self, topic: str, kind: str) -> Check:
        """The files of a kind, made again, against those of the archive; of an unfinished study, those that it has."""
        wanted = {name for name, each in self.kinds.items() if each == kind}
        names = sorted(wanted.intersection(self.names) if self.partial else wanted)
        odd = {name: difference(self.made / name, self.folder / name, self.same_version) for name in names}
        culprits = [f"{name}: {told}" for name, told in odd.items() if told]
        return judged(topic, f"{len(names)} files, made again", f"{len(culprits)} of {len(names)} differ", culprits)


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
    for line in MEANING if not topics["FAILED"] else ():
        print(line)
    print(f"{printable(str(options.archive))}: {verdict}")
    sys.exit(bool(topics["FAILED"]))


if __name__ == "__main__":
    main()
