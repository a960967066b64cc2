"""The verdicts on the paper's claims: `mcgrpo claims [STUDY.yaml ...]`.

By the numbers that the paper prints, and, where study files are named, by that study's results. The reports of a study
have the evidence for each verdict, as claims.md, claims.tex and claims.csv.
"""

from mcgrpo import command_line
from mcgrpo.report.claims.judge import rulings
from mcgrpo.report.claims.tables import listing
from mcgrpo.study import read as study_file
from mcgrpo.study.paths import StudyFiles


def main() -> None:
    """Print the verdicts on the paper's claims: by its own numbers, and by the study whose files are named."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser, default="none, the paper's numbers alone")
    options = parser.parse_args()
    with command_line.errors(ValueError):
        comparisons = None
        if options.studies:
            config = study_file.read(options.studies)
            comparisons = study_file.existing(config, StudyFiles(config["study"]).results.comparisons)
        found = rulings(comparisons)
    print(listing(found))


if __name__ == "__main__":
    main()
