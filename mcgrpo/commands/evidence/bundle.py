"""A study in one archive: `mcgrpo bundle [STUDY.yaml ...] [--output FILE]`.

It holds the study, merged, and of every run its record, metrics, recorded rollouts and grades, with
what was made of them: scores, summary, tables, claims. SHA256SUMS has the hash of each, MANIFEST.json the commits and
versions. The same study gives the same bytes. `mcgrpo verify` checks it.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Container
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.analyse.collect import collect
from mcgrpo.commands.evidence import archive
from mcgrpo.commands.evidence.contents import FORMAT, MANIFEST, OPTIONAL, STUDY, SUMS, planned_files, reports
from mcgrpo.files import RecordError, write_json
from mcgrpo.records import Outcome, Plan
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.paths import RECORD, ResultFiles, StudyFiles
from mcgrpo.study.plan import Config, plan_of
from mcgrpo.study.planned import read_plan, trained_runs
from mcgrpo.study.trained import read_record
from mcgrpo.sums import sha256, write_list
from mcgrpo.train.provenance import commit

SHOWN = 5
"""Missing files that are printed."""


def bundle(study: list[Path], output: Path | None = None, completions: bool = False) -> tuple[Path, list[str]]:
    """Pack the study that lies here; returns the archive, and what the study lacks.

    Args:
        study: its files, as Snakemake was given them; none for the default.
        output: the archive; by default named after the study, here.
        completions: whether to pack the text that was graded.

    Raises:
        StudyError: where the study was not run here, or by other files.
        RecordError: naming a file that cannot be read.
    """
    config = study_file.read(study)
    planned = checked_plan(config)
    kinds, files = planned_files(config, planned), dict[str, Path]()
    for name, kind in kinds.items():
        is_report = Path(name).parent == reports(config)
        path = Path(config["reports"], Path(name).name) if is_report else Path(name.removeprefix("study/"))
        if path.is_file() and (completions or kind != "text"):
            files[name] = path
    unfinished = collect(planned, StudyFiles(config["study"]).results.folder, unfinished=True).missing
    lacking = missing(kinds, files, unfinished)
    top = f"{config['study']}-evidence"
    output = output or Path(top + archive.SUFFIX)
    with tempfile.TemporaryDirectory(prefix="mcgrpo-bundle-") as folder:
        files |= {name: Path(folder, name) for name in (STUDY, MANIFEST, SUMS)}
        write_json(files[STUDY], config)
        write_json(files[MANIFEST], _manifest(config, planned))
        write_list(files[SUMS], {name: sha256(path) for name, path in sorted(files.items()) if name != SUMS})
        archive.write(output, top, files)
    return output, lacking


def checked_plan(config: Config) -> Plan:
    """The plan that a study was run by.

    Raises:
        StudyError: where there is none, or it is not the plan of this study.
    """
    path = StudyFiles(config["study"]).results.plan
    plan, wanted = read_plan(study_file.existing(config, path)), plan_of(config)
    if odd := [key for key, value in vars(wanted).items() if getattr(plan, key) != value]:
        raise StudyError(f"{path}: {odd[0]} differs from these study files; name those that it was run with")
    return plan


def missing(kinds: dict[str, str], names: Container[str], unfinished: list[str]) -> list[str]:
    """What is planned and not among the names, or is not whole.

    Args:
        kinds: see `planned_files`.
        unfinished: what `mcgrpo.analyse.collect` misses.
    """
    absent = [f"{name}: no such file" for name, kind in kinds.items() if kind not in OPTIONAL and name not in names]
    return list(dict.fromkeys([*absent, *unfinished]))


def outcomes(planned: Plan, results: ResultFiles) -> dict[str, Outcome]:
    """Training -> the `outcome` of its run.json, for those that have one.

    Raises:
        RecordError: for one that holds anything else.
    """
    records = {run.name: results.run(run.name) / RECORD for run in trained_runs(planned)}
    found = {name: read_record(path)[1] for name, path in records.items() if path.is_file()}
    return {name: outcome for name, outcome in found.items() if outcome}


def _manifest(config: Config, planned: Plan) -> dict[str, Any]:
    """What made the archive, and what made its trainings; nothing in it depends on when."""
    ours = {"format": FORMAT, "mcgrpo": version("mcgrpo"), "commit": commit()}
    return ours | made_of(planned, StudyFiles(config["study"]).results)


def made_of(planned: Plan, results: ResultFiles) -> dict[str, Any]:
    """The study, the number of its trainings, and their commits and versions by count."""
    found = list(outcomes(planned, results).values())
    packages = Counter(json.dumps(outcome.versions, sort_keys=True) for outcome in found)
    return {
        "study": planned.study,
        "trainings": len(found),
        "commits": dict(sorted(Counter(str(outcome.commit) for outcome in found).items())),
        "versions": [{"trainings": count, **json.loads(each)} for each, count in sorted(packages.items())],
    }


def main() -> None:
    """Pack a study that was run into one archive that can be checked."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"default: STUDY-evidence{archive.SUFFIX}, here")
    parser.add_argument("--completions", action="store_true", help="pack the text that was graded, too")
    options = parser.parse_args()
    output = options.output.absolute() if options.output else None
    if output and output.is_dir():
        parser.error(f"--output {options.output}: is a folder, name a file in it")
    with command_line.errors(StudyError, RecordError):
        path, lacking = bundle(options.studies, output, options.completions)
    print(f"{options.output or path}: {path.stat().st_size / 1e6:,.1f} MB, sha256 {sha256(path)}")
    for line in lacking[:SHOWN]:
        print(f"missing: {line}")
    if len(lacking) > SHOWN:
        print(f"missing: {len(lacking) - SHOWN} more")


if __name__ == "__main__":
    main()
