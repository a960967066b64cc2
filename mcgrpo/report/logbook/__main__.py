"""Write the logbook of a study: `mcgrpo logbook config/mini.yaml [--output FOLDER] [--price X]`.

A page for each claim (what was claimed, scope, evidence, hardware, compute, cost, what was lost and left out), a list
of them, and answers to a reproducibility checklist, as Markdown. It reads the study file, and results/STUDY up to
contrasts.csv; nothing is computed again.
"""

import re
from functools import partial
from pathlib import Path

from mcgrpo import command_line, shipped
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import Score
from mcgrpo.analyse.scored import planned_seeds
from mcgrpo.files import read_json
from mcgrpo.report.claims.judge import judge_published, judge_study
from mcgrpo.report.logbook.checklist import checklist
from mcgrpo.report.logbook.pages import Study, index, page, write
from mcgrpo.report.page.jobs import planned_trainings
from mcgrpo.study import read as study_file
from mcgrpo.study.paths import StudyFiles


def logbook(study: Study) -> dict[str, str]:
    """The pages by file name."""
    claims = read_claims(shipped.CLAIMS)
    ours = judge_study(claims, study.files.contrasts)
    pairs = list(zip(judge_published(claims), ours, strict=True))
    _, missing = study.part(set(study.seeds))
    pages = {f"{own.claim.id}.md": page(study, its, own) for its, own in pairs}
    return pages | {"README.md": index(study, pairs, missing), "checklist.md": checklist(study, ours, missing)}


def read(config: dict, price: float | None = None) -> Study:
    """A study with its results, from here."""
    files = StudyFiles(config["study"]).results
    plan = read_json(study_file.made(config, files.plan))
    drawn = [re.fullmatch(r"avg@(\d+)", measure) for measure in plan["measures"]]
    samples = max((int(each[1]) for each in drawn if each), default=0)
    scores = read_frame(files.scores, Score)
    return Study(config, files, planned_trainings(files.folder), planned_seeds(plan), scores, samples, price)


def main() -> None:
    """Write a page for each claim, and answers to a reproducibility checklist."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    parser.add_argument("--output", type=Path, help="folder of the pages (default: logbook in the study's reports)")
    parser.add_argument("--price", type=partial(command_line.number, least=0), help="of a device-hour, for the cost")
    options = parser.parse_args()
    output = options.output and options.output.absolute()
    with command_line.errors(ValueError, OSError):
        config = study_file.read(study_file.resolve(options))
        pages = logbook(read(config, options.price))
    folder = output or Path(config["reports"], "logbook")
    write(folder, pages)
    print(f"{folder / 'README.md'}: {len(pages)} pages")


if __name__ == "__main__":
    main()
