"""Write the report of a study as one HTML file.

    python -m mcgrpo.report.page --results results/mini --reports reports/mini --figures overview rewards \
        [--title "Mini study (toy models)"]

writes report.html into the reports: the answer, verdicts on the paper's claims, every table and figure with its n and
its sources, times, environment, what is missing, and how to make it again. Tables and figures are those of summary.csv,
gains.csv, contrasts.csv and curves.csv; run.json and benchmarks/ tell the rest.
"""

import argparse
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from mcgrpo import command_line, shipped
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.frames import read_frame, read_records
from mcgrpo.analyse.records import Cell, CellSignal, Contrast, CurvePoint, Gain, SignalPoint
from mcgrpo.files import read_json, write_text
from mcgrpo.report import answer, wording
from mcgrpo.report.catalogue import FIGURES
from mcgrpo.report.claims.judge import judge_published, judge_study
from mcgrpo.report.claims.tables import CAPTION, HEADINGS, counts, total
from mcgrpo.report.lost import lost
from mcgrpo.report.page import contents, jobs, verdicts
from mcgrpo.report.page.prediction import sentence
from mcgrpo.report.tables.latex import SMALL, VERDICT
from mcgrpo.study.paths import ResultFiles

LARGEST = 15_000_000
"""Maximum size of the page in bytes."""


def write_page(options: argparse.Namespace) -> int:
    """Write the page; returns its bytes.

    Raises:
        ValueError: names a missing or invalid input, or says that the page would be too large.
    """
    page = options.output or options.reports / "report.html"
    text = render(content(options, page))
    size = len(text.encode())
    if size > LARGEST:
        raise ValueError(f"{page} would have {size / 1e6:.1f} MB, over {LARGEST / 1e6:.0f}: name fewer --figures")
    write_text(page, text)
    return size


def content(options: argparse.Namespace, page: Path) -> dict[str, Any]:
    """The data of the template."""
    files = ResultFiles(options.results)
    summary = read_frame(files.summary, Cell)
    gains = read_frame(files.gains, Gain)
    curves = read_frame(files.curves, CurvePoint)
    plan = read_json(files.plan)
    planned = jobs.planned_trainings(options.results)
    claims = read_claims(options.claims)
    published, ours = judge_published(claims, options.published), judge_study(claims, files.contrasts)
    points, signals = read_frame(files.signal_curves, SignalPoint), read_frame(files.signals, CellSignal)
    frames = {"summary": summary, "gains": gains, "curves": curves, "signal_curves": points}
    figures = contents.figure_views(options.figures, options.reports / "figures", options.captions, frames)
    found = answer.answer(plan, read_records(files.contrasts, Contrast))
    gained = "gains-greedy" if plan["primary"]["measure"] == "greedy" else "gains-sampled"
    return {
        "title": options.title or plan["study"],
        "study": plan["study"],
        "results": options.results,
        "reports": options.reports,
        "to_results": os.path.relpath(options.results, page.parent),
        "to_reports": os.path.relpath(options.reports, page.parent),
        "question": answer.ASKED[answer.CONTROL],
        "answer": found,
        "answer_table": contents.answer_view(found),
        "lead": next((figure for figure in figures if figure.name == gained), None),
        "lost": lost(summary),
        "verdicts": wording.about_verdicts(plan["equivalence_margin"]),
        "prediction": sentence(signals),
        "sources": [(HEADINGS[each[0].source], counts(each)) for each in (published, ours)],
        "claims": verdicts.claim_rows(published, ours, summary),
        "claims_caption": f"{CAPTION} {HEADINGS['ours']}: {total(ours)}",
        "tables": contents.table_views(summary),
        "signal": contents.signal_view(signals),
        "figures": [figure for figure in figures if figure.name != gained],
        "timings": contents.timings_view(summary),
        "stages": jobs.stages(options.results),
        "environment": jobs.environment(planned),
        "commits": jobs.commits(planned),
        "ended": jobs.ended(planned),
        "finished": sum(each.state == jobs.FINISHED for each in planned),
        "planned": len(planned),
        "states": jobs.states(planned),
        "missing_runs": jobs.missing_runs(planned),
        "missing_cells": jobs.missing_cells(summary),
        "missing_figures": [figure.title for figure in figures if not figure.image],
        "command": command(page, options.study_files),
    }


def command(page: Path, study_files: Sequence[str]) -> str:
    """The command that makes the page from scratch; without study files, of Snakemake's default study."""
    given = ["--configfile", *study_files] if study_files else []
    return shlex.join(["snakemake", str(page), "--cores", "all", *given])


def render(values: dict[str, Any]) -> str:
    """The page as HTML."""
    environment = Environment(
        loader=FileSystemLoader(shipped.PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"spelt": spelt, "duration": duration, "count": wording.count, "percent": wording.percent}
    template = environment.get_template("report.html")
    return template.render(**values, style=Markup((shipped.PAGE / "style.css").read_text(encoding="utf-8"))) + "\n"


def spelt(text: str) -> Markup:
    """A table entry as HTML, with small intervals and remarks."""
    marked = VERDICT.sub(r'<span class="verdict">\g<0></span>', str(escape(text)))
    marked = SMALL.sub(r'<span class="ci">\1</span>', marked)
    return Markup(marked.replace(wording.MISSING, f'<span class="{wording.MISSING}">{wording.MISSING}</span>'))


def duration(seconds: float) -> str:
    """Seconds as text: "48 s", "5 min 12 s", "3 h 20 min"."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def main(arguments: list[str] | None = None) -> None:
    """Write the HTML report of a study."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--results", type=Path, required=True, help="results/STUDY: summary.csv, curves.csv, runs, ...")
    parser.add_argument("--reports", type=Path, required=True, help="folder of the tables and of figures/")
    parser.add_argument("--figures", nargs="*", default=[], choices=FIGURES, metavar="NAME", help="what to show")
    parser.add_argument("--captions", type=Path, default=shipped.CAPTIONS, help="folder of NAME.rst")
    parser.add_argument("--claims", default=shipped.CLAIMS)
    parser.add_argument("--published", default=shipped.PUBLISHED)
    parser.add_argument("--title", default="", help="what the study is called")
    told = "the files of the study, to say how the page is made; default: MCGRPO_STUDY_FILES, which the workflow sets"
    given = json.loads(os.environ.get("MCGRPO_STUDY_FILES", "[]"))
    parser.add_argument("--study-files", nargs="*", default=given, metavar="FILE", help=told)
    parser.add_argument("--output", type=Path, help="default: report.html in the reports")
    options = parser.parse_args(arguments)
    with command_line.errors(ValueError):
        size = write_page(options)
    print(f"{options.output or options.reports / 'report.html'}: {size / 1e6:.1f} MB")
