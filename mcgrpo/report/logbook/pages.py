"""The pages of a logbook as Markdown: one for each claim, and the list of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from mcgrpo import shipped
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.contrasts import cells_of
from mcgrpo.files import write_text
from mcgrpo.records import cell_name
from mcgrpo.report import wording
from mcgrpo.report.claims.rulings import Finding, Ruling
from mcgrpo.report.claims.tables import evidence, place, spell
from mcgrpo.report.logbook.losses import lost
from mcgrpo.report.lost import Lost
from mcgrpo.report.page.jobs import FINISHED, Training, environment
from mcgrpo.study import strict_yaml
from mcgrpo.study.methods import label
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.plan import title
from mcgrpo.study.variants import DEFAULT

TOY = "toy models"
OTHER = "other models than the paper's"
WARNINGS = {
    TOY: "**Toy study.** Its models were made from scratch for generated problems: this verdict is on them, and is no "
    "evidence for or against the paper's.",
    OTHER: "**Other models than the paper's**: this verdict is on them.",
}


@dataclass(frozen=True)
class Study:
    """All that pages are made from.

    Args:
        config: the study file.
        files: its results.
        trainings: every planned training.
        seeds: planned seeds of every cell on every benchmark.
        scores: scores.csv.
        samples: completions of a problem that are sampled, beside the greedy one.
        price: of a device-hour; None if it is not known.
    """

    config: Mapping[str, Any]
    files: ResultFiles
    trainings: Sequence[Training]
    seeds: Mapping[CellKey, set[int]]
    scores: pd.DataFrame
    samples: int
    price: float | None = None

    @property
    def title(self) -> str:
        """What it is called."""
        return title(self.config)

    def kind(self, settings: set[str]) -> str:
        """`TOY`, `OTHER`, or nothing where all models of the settings (by default of all) are the paper's."""
        settings = settings or {each.run.setting for each in self.trainings}
        models = [self.config["models"][self.config["settings"][each]["model"]] for each in sorted(settings)]
        if any("toy" in model for model in models):
            return TOY
        papers = {model["hub"] for model in _papers_study()["models"].values()}
        return "" if all(model.get("hub") in papers for model in models) else OTHER

    def part(self, cells: set[CellKey]) -> "tuple[list[Training], Lost]":
        """The trainings of these cells, and what was lost of them and of their evaluations."""
        names = {cell_name(cell._asdict()) for cell in cells}
        trainings = [each for each in self.trainings if cell_name(vars(each.run)) in names]
        seeds = {cell: self.seeds[cell] for cell in cells}
        return trainings, lost(self.files, trainings, seeds, self.scores, self.samples)


@cache
def _papers_study() -> dict[str, Any]:
    return strict_yaml.load(shipped.STUDY)


def outcome(study: Study, ruling: Ruling, cells: set[CellKey]) -> str:
    """The verdict of a study, labelled where its models are not the paper's."""
    kind = study.kind({cell.setting for cell in cells})
    judged = ruling.verdict in ("holds", "fails", "equivalent", "inconclusive")
    return f"{ruling.verdict} ({kind})" if kind and judged else ruling.verdict


def page(study: Study, published: Ruling, ours: Ruling) -> str:
    """The page of one claim."""
    cells = cells_of(ours.claim, study.seeds)
    trainings, missing = study.part(cells)
    return "\n".join(_lines(study, published, ours, cells, trainings, missing)) + "\n"


def _lines(
    study: Study, published: Ruling, ours: Ruling, cells: set[CellKey], trainings: Sequence[Training], missing: Lost
) -> Iterator[str]:
    claim = ours.claim
    yield from (f"# {claim.id}", "", f"> {claim.says}", "", f"{claim.where}. {study.title}.", "")
    yield f"**Outcome: {outcome(study, ours, cells)}.** {_sentence(evidence(ours))}"
    if warning := WARNINGS.get(study.kind({cell.setting for cell in cells})):
        yield from ("", warning)
    yield from ("", f"**Lost:** {missing}", "", "## What was claimed", "")
    yield f"- Read as: {claim.reading or 'as it is said'}."
    needed = "some setting is enough" if claim.quantifier == "some" else "it must hold in all settings"
    yield f"- Decided by: {'the comparisons below' if claim.comparisons else 'nothing'}; {needed}."
    yield f"- By the paper's own numbers: {published.verdict}; {evidence(published)}"
    yield from ("", "## Scope", "", *_scope(study, cells), "", "## Evidence", "", *_evidence(study, ours))
    yield from ("", "## Hardware, compute and cost", "", *_compute(study, trainings))
    yield from ("", "## What was left out", "", *_left_out(study, ours, cells, trainings))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _scope(study: Study, cells: set[CellKey]) -> Iterator[str]:
    if not cells:
        yield "The study plans none of its cells."
        return
    settings = sorted({cell.setting for cell in cells})
    models = {each: study.config["settings"][each] for each in settings}
    yield "- Settings: " + ", ".join(f"{name} ({spec['model']} on {spec['dataset']})" for name, spec in models.items())
    yield f"- Methods: {', '.join(label(each) for each in sorted({cell.method for cell in cells}))}"
    if generations := sorted({cell.num_generations for cell in cells} - {0}):
        yield f"- G: {', '.join(map(str, generations))}"
    if variants := sorted({cell.variant for cell in cells} - {DEFAULT}):
        yield f"- Variants: {', '.join(variants)}"
    yield f"- Measured on: {', '.join(sorted({cell.benchmark for cell in cells}))}"
    seeds = [len(study.seeds[cell]) for cell in cells if cell.num_generations]
    yield from [f"- Seeds planned in a cell: {wording.span(seeds)}"] if seeds else []


def _evidence(study: Study, ours: Ruling) -> Iterator[str]:
    rows = [*(row for row in ours.averages if row.kind != "pooled"), *ours.findings]
    table = [_row(row) for row in rows if row.value is not None]
    if not table:
        yield "No number."
        return
    yield pd.DataFrame(table, columns=["", "verdict", "distance inside the bound"]).to_markdown(
        index=False, disable_numparse=True
    )
    files = [study.files.contrasts, study.files.scores, study.files.values]
    yield ""
    yield f"From the rows of `{ours.claim.id}` in `{files[0]}`, made from `{files[1].name}` and `{files[2].name}`;"
    yield f"the grades of single completions are under `{study.files.folder / 'grades'}`."


def _row(row: Finding) -> tuple[str, str, str]:
    kinds = {"primary": "**endpoint**, ", "setting": "**endpoint of a setting**, "}
    margin = "" if row.margin is None else f"{row.margin:.2f}".replace("-", "−")
    return f"{kinds.get(row.kind, '')}{spell(row)}", row.verdict, margin


def _compute(study: Study, trainings: Sequence[Training]) -> Iterator[str]:
    if not trainings:
        yield "No training."
        return
    finished = [each for each in trainings if each.state == FINISHED]
    for name, value in environment(list(trainings)):
        yield f"- {name}: {value}"
    hours = sum(each.outcome["seconds"] * max(each.outcome.get("gpus", 0), 1) for each in finished) / 3600
    unit = "GPU-hours" if any(each.outcome.get("gpus") for each in finished) else "hours on a CPU"
    yield f"- Compute: {wording.count(len(finished), 'finished training')}, {hours:,.2f} {unit}, without evaluation"
    yield "- Other claims share these trainings: hours of claims must not be added"
    cost = "unknown, no price was given (`--price`)" if study.price is None else f"{hours * study.price:,.2f}"
    yield f"- Cost: {cost}" + ("" if study.price is None else f", at {study.price:g} an hour")


def _left_out(study: Study, ours: Ruling, cells: set[CellKey], trainings: Sequence[Training]) -> Iterator[str]:
    if ours.unjudged:
        yield f"- Not judged: {ours.unjudged}."
    empty = sorted({f"{place(row)}: {row.comparison}" for row in ours.findings if row.value is None})
    yield from (f"- Not measured: {text}" for text in empty)
    settings = {cell.setting for cell in cells}
    papers = ours.claim.settings or _papers_study()["experiments"]["main"]["settings"]
    if others := [each for each in papers if each not in settings]:
        yield f"- Settings of the paper that this study does not have: {', '.join(others)}"
    unfinished = [each for each in trainings if each.state != FINISHED]
    yield from (f"- {each.run.name}: {each.state}" for each in unfinished)
    if not (ours.unjudged or empty or others or unfinished):
        yield "Nothing that the claim asks for."


def index(study: Study, rulings: Sequence[tuple[Ruling, Ruling]], missing: "Lost") -> str:
    """The list of claims, with what was lost of the whole study."""
    kind = study.kind({each.run.setting for each in study.trainings})
    rows = [
        (f"[{ours.claim.id}]({ours.claim.id}.md)", outcome(study, ours, cells_of(ours.claim, study.seeds)), its.verdict)
        for its, ours in rulings
    ]
    table = pd.DataFrame(rows, columns=["Claim", "By this study", "By the paper's numbers"])
    lines = [f"# Logbook: {study.title}", "", *([WARNINGS[kind], ""] if kind else []), f"**Lost:** {missing}", ""]
    lines += ["[Answers to a reproducibility checklist](checklist.md)", ""]
    return "\n".join([*lines, table.to_markdown(index=False, disable_numparse=True)]) + "\n"


def write(folder: Path, pages: Mapping[str, str]) -> None:
    """Write pages by file name; those of claims that are no more are left."""
    for name, text in pages.items():
        write_text(folder / name, text)
