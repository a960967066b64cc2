"""Write the report of a study as one HTML file.

    python -m mcgrpo.report.page --results results/mini --reports reports/mini --figures gains-sampled rewards \
        [--title "Mini study (toy models)"]

writes report.html into the reports, from the CSV files and run.json of the results and the figures of the reports.
"""

import argparse
import base64
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mcgrpo import command_line, shipped
from mcgrpo.analyse.frames import is_among, read_cells, read_frame, read_records
from mcgrpo.analyse.records import CellSignal, Contrast, CurvePoint
from mcgrpo.files import write_text
from mcgrpo.report import answer
from mcgrpo.report.claims import tables as claims
from mcgrpo.report.claims.judge import rulings
from mcgrpo.report.page import jobs
from mcgrpo.report.tables import questions, signal
from mcgrpo.report.tables.__main__ import tables
from mcgrpo.report.tables.frame import Table
from mcgrpo.report.tables.trainings import share, timings
from mcgrpo.study.methods import label
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import read_plan
from mcgrpo.study.primary import CONTROL, MEAN, METHOD
from mcgrpo.study.variants import DEFAULT

PAGE = "report.html"


def content(options: argparse.Namespace) -> dict[str, Any]:
    """The data of the template.

    Raises:
        ValueError: names a missing or invalid input.
        FileNotFoundError: for a figure that is not there.
    """
    files = ResultFiles(options.results)
    summary, plan = read_cells(files), read_plan(files.plan)
    planned = jobs.planned_trainings(plan, files)
    measured = [(name, spec.benchmark) for name, spec in plan.flips.items()]
    unmeasured = [each for each in measured if not files.flips(*each).is_file()]
    signals = signal.table(read_frame(files.signals, CellSignal))
    gained = "gains-greedy" if plan.primary.measure == "greedy" else "gains-sampled"
    figures = [figure(name, options.reports / "figures") for name in options.figures]
    studies = json.loads(os.environ.get("MCGRPO_STUDY_FILES", "[]"))
    given = ["--configfile", *studies] if studies else []  # set by the workflow
    comparisons = read_records(files.comparisons, Contrast)
    asked = questions.table(plan, comparisons)
    predicts = signals and signal.agreements(signals.cells)
    return {
        "title": options.title or plan.study,
        "study": plan.study,
        "to_results": os.path.relpath(options.results, options.reports),
        "answer": (found := answer.answer(plan, comparisons)),
        "asked": answer.ASKED,
        "answer_table": answer.answer_table(found),
        "gradients": gradients(summary, read_frame(files.curves, CurvePoint)),
        "facts": [said for said in (predicts, answer.lost(summary, plan.selections)) if said],
        "lead": next((each for each in figures if each["name"] == gained), None),
        "figures": [each for each in figures if each["name"] != gained],
        "by_source": rulings(files.comparisons),
        "claims": claims,
        "tables": [*([asked] if asked else []), *tables(summary), *([signals] if signals else [])],
        "made": list(filter(None, (jobs.environment(planned), timings(summary)))),
        "commits": jobs.commits(planned),
        "ended": jobs.ended(planned),
        "states": jobs.states(planned),
        "planned": len(planned),
        "missing": jobs.missing(planned, summary, unmeasured),
        "command": shlex.join(["snakemake", str(options.reports / PAGE), "--cores", "all", *given]),
    }


def gradients(summary: pd.DataFrame, curves: pd.DataFrame) -> Table | None:
    """Steps clipped and median gradient norm of MC-GRPO beside those of GRPO and the control.

    Under the default variant, at each setting and G that both MC-GRPO and GRPO are trained at; None without any.
    """
    place = ["setting", "num_generations"]
    points = curves[(curves.variant == DEFAULT) & curves.grad_norm.notna()]
    both = [is_among(points, points[points.method == method], place) for method in (METHOD, MEAN)]
    points = points[both[0] & both[1]]
    cells = summary[(summary.measure == "frac_grad_clipped") & (summary.variant == DEFAULT) & (summary.seeds > 0)]
    cells = cells[is_among(cells, points, [*place, "method"])]
    rows = []
    for method in (METHOD, MEAN, CONTROL):
        norms, own = points[points.method == method].grad_norm, cells[cells.method == method]
        if len(norms) and len(own):
            cut, seeds = (own["mean"] * own.seeds).sum() / own.seeds.sum(), own.seeds.sum()
            rows.append((label(method), share(cut), f"{norms.median():.3g}", str(seeds)))
    headings = ["Method", "Steps clipped", "Median gradient norm", "Trainings"]
    caption = "Gradients: the share of steps whose norm exceeds max_grad_norm, and the median norm before clipping."
    return Table("gradients", caption, pd.DataFrame(rows, columns=headings), 0) if rows else None


def figure(name: str, folder: Path) -> dict[str, str]:
    """A figure of a folder as a data URI, with what workflow/report/NAME.rst says of it."""
    _, title, caption = (shipped.CAPTIONS / f"{name}.rst").read_text(encoding="utf-8").split("**")
    image = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
    return {"name": name, "title": title.rstrip("."), "caption": " ".join(caption.split()), "image": image}


def render(values: dict[str, Any]) -> str:
    """The page as HTML."""
    loader = FileSystemLoader(shipped.PAGE)
    options = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    style = Markup((shipped.PAGE / "style.css").read_text(encoding="utf-8"))
    return Environment(loader=loader, **options).get_template("report.html").render(**values, style=style) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Write the HTML report of a study."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--results", type=Path, required=True, help="results/STUDY: summary.csv, curves.csv, runs, ...")
    parser.add_argument("--reports", type=Path, required=True, help="folder of the tables and of figures/")
    parser.add_argument("--figures", nargs="*", default=[], metavar="NAME", help="what to show")
    parser.add_argument("--title", default="", help="what the study is called")
    options = parser.parse_args(arguments)
    with command_line.errors(ValueError, FileNotFoundError):
        page = render(content(options))
        write_text(options.reports / PAGE, page)
    print(f"{options.reports / PAGE}: {len(page.encode()) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
