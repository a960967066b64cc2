"""The headline of the first seeds of a study, with its figure: `python -m mcgrpo.report.answer`."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcgrpo import command_line
from mcgrpo.analyse.collect import collect
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.records import Cell, Gain, Score
from mcgrpo.analyse.summarise import summarise
from mcgrpo.files import read_json, write_csv, write_text
from mcgrpo.records import Run
from mcgrpo.report import figures
from mcgrpo.report.tables import headline
from mcgrpo.study.headline import answers, headline_runs
from mcgrpo.study.methods import UNTRAINED


def main(arguments: list[str] | None = None) -> None:
    """Write headline.md and the figure of the gains."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json of the study")
    parser.add_argument("--results", type=Path, required=True, help="results/STUDY")
    parser.add_argument("--published", type=Path, required=True, help="the paper's numbers")
    parser.add_argument("--seeds", required=True, help="how many seeds of the headline, of how many: `2 of 16`")
    parser.add_argument("--figure", required=True, choices=("gains-sampled", "gains-greedy"))
    parser.add_argument("--output", type=Path, required=True, help="folder of both")
    options = parser.parse_args(arguments)
    with command_line.errors(ValueError), TemporaryDirectory() as folder:
        scores, summary, gains = (Path(folder, f"{name}.csv") for name in ("scores", "summary", "gains"))
        plan = of_first_seeds(read_json(options.plan), int(options.seeds.split()[0]))
        collected = collect(plan, options.results, unfinished=True)
        write_csv(scores, Score, collected.scores)
        published = as_cells(read_published(options.published))
        made = summarise(plan, read_frame(scores, Score), collected.values, published)
        write_csv(summary, Cell, made.cells)
        write_csv(gains, Gain, made.gains)
        answer = headline.headline(read_frame(summary, Cell), read_frame(gains, Gain))
        write_text(options.output / "headline.md", f"With {options.seeds} seeds: {headline.markdown(answer)}")
        sources = ["--summary", summary, "--gains", gains, "--output", options.output / options.figure]
        figures.main([options.figure, *map(str, sources)])


def of_first_seeds(plan: dict[str, Any], count: int) -> dict[str, Any]:
    """The plan with the untrained models and all runs of the headline's first seeds, of other experiments too."""
    runs = answers(headline_runs(Run(**row) for row in plan["runs"]))[count]
    seeds = {run.seed for run in runs}
    return {**plan, "runs": [row for row in plan["runs"] if row["seed"] in seeds or row["method"] == UNTRAINED]}


if __name__ == "__main__":
    main()
