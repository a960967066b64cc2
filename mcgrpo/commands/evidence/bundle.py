"""A study in one archive: `mcgrpo bundle [STUDY.yaml ...] [--output FILE]`.

It holds the study's files and their locks, the lists of packages, and of every run its record, metrics, rollouts and
grades, with what was made of them: scores, summary, tables, claims. MANIFEST.json has the SHA-256 of each, the commits
and versions of the runs, and what is missing. The same study gives the same bytes. `mcgrpo verify` checks it.
"""

import json
from pathlib import Path

from mcgrpo import command_line
from mcgrpo.commands.evidence import archive
from mcgrpo.commands.evidence.contents import STUDY, checked_plan, contents
from mcgrpo.commands.evidence.manifest import MANIFEST, SUMS, Manifest, manifest, sums
from mcgrpo.files import RecordError
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError

SHOWN = 5
"""Missing files that are printed; the manifest has all."""


def bundle(files: list[Path], output: Path | None = None, completions: bool = False) -> tuple[Path, Manifest]:
    """Pack the study that lies here.

    Args:
        files: the study's, as Snakemake was given them; none for the default.
        output: the archive; by default named after the study, here.
        completions: whether to pack the text that was graded.

    Raises:
        StudyError: where the study was not run here, or by other files.
        ArchiveError, RecordError: naming a file that changes meanwhile, or cannot be read.
    """
    config = study_file.read(files)
    _, layers = study_file.merged(files)
    planned = checked_plan(config)
    packed = contents(config, layers, planned, completions)
    own = {STUDY: (json.dumps(config, indent=2) + "\n").encode()}
    made = manifest(config, planned, packed, own)
    own[MANIFEST] = made.as_bytes()
    own[SUMS] = sums({**made.hashes, MANIFEST: archive.sha256(own[MANIFEST])})
    top = f"{config['study']}-evidence"
    output = output or Path(top + archive.SUFFIX)
    archive.write(output, top, {**packed.files, **own}, made.hashes)
    return output, made


def main() -> None:
    """Pack a study that was run into one archive that can be checked."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"default: STUDY-evidence{archive.SUFFIX}, here")
    parser.add_argument("--completions", action="store_true", help="pack the text that was graded, too")
    options = parser.parse_args()
    output, here = options.output.absolute() if options.output else None, Path.cwd()
    if output and not output.name.endswith(archive.SUFFIX):
        parser.error(f"--output {options.output}: the archive is a {archive.SUFFIX}")
    with command_line.errors(StudyError, RecordError, archive.ArchiveError):
        path, made = bundle(study_file.resolve(options), output, options.completions)
    path = path.absolute()
    shown, size = path.relative_to(here) if path.is_relative_to(here) else path, path.stat().st_size / 1e6
    runs = f"{sum(made.commits.values())} of {made.trainings} trainings"
    print(f"{shown}: {len(made.files)} files, {size:,.1f} MB, {runs}")
    for line in made.missing[:SHOWN]:
        print(f"missing: {line}")
    if len(made.missing) > SHOWN:
        print(f"missing: {len(made.missing) - SHOWN} more, see {MANIFEST}")
    print(f"sha256 {archive.sha256(path)}")


if __name__ == "__main__":
    main()
