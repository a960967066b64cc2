"""Judge the paper's claims: print the list, and with --output write claims.md, claims.tex and claims.csv.

python -m mcgrpo.report.claims [--contrasts results/mini/contrasts.csv] [--output reports] [--title "Mini study"]
"""

from pathlib import Path

from mcgrpo import command_line, shipped
from mcgrpo.analyse.claims import read_claims
from mcgrpo.report.claims.judge import judge_published, judge_study
from mcgrpo.report.claims.tables import listing, write_rulings


def main(arguments: list[str] | None = None) -> None:
    """Judge the claims, write the files, print the list."""
    parser = command_line.parser("Judge the paper's claims.")
    parser.add_argument("--claims", default=shipped.CLAIMS, help="the claims (default: the paper's)")
    parser.add_argument("--published", default=shipped.PUBLISHED, help="numbers (default: those that the paper prints)")
    parser.add_argument("--contrasts", help="contrasts.csv of a study; without it the published numbers alone")
    parser.add_argument("--output", type=Path, help="folder for claims.md, claims.tex and claims.csv")
    parser.add_argument("--title", default="", help="what the caption starts with, such as the study's name")
    options = parser.parse_args(arguments)
    with command_line.errors(ValueError):
        claims = read_claims(options.claims)
        rulings = [judge_published(claims, options.published)]
        if options.contrasts:
            rulings.append(judge_study(claims, options.contrasts))
    if options.output:
        write_rulings(rulings, options.output, options.title)
    print(listing(rulings))


if __name__ == "__main__":
    main()
