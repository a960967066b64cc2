"""Answers to the NeurIPS paper checklist (neurips.cc/public/guides/PaperChecklist) from the records of a study.

They are on the study that was run, not on the paper that it reproduces. What records cannot tell is left to the author.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import pandas as pd

from mcgrpo.report import wording
from mcgrpo.report.claims.rulings import Ruling
from mcgrpo.report.logbook.pages import WARNINGS, Study
from mcgrpo.report.lost import Lost
from mcgrpo.report.page.jobs import FINISHED, commits, environment, stages
from mcgrpo.study.hub import is_pinned

BY_HAND = "To be answered by the author: the records do not tell."


def checklist(study: Study, rulings: Sequence[Ruling], missing: Lost) -> str:
    """The checklist as Markdown: a section for each item, numbered as there."""
    items = {
        "1. Claims": _claims(study, rulings),
        "2. Limitations": _limitations(study, rulings, missing),
        "3. Theory assumptions and proofs": ["Not applicable: a study of runs."],
        "4. Experimental result reproducibility": _reproducibility(study),
        "5. Open access to data and code": _access(study),
        "6. Experimental setting and details": _details(study),
        "7. Experiment statistical significance": _significance(study),
        "8. Experiments compute resources": _compute(study),
        "12. Licenses for existing assets": ["The records hold no licences.", BY_HAND],
        "9 to 11, 13 to 16. Ethics, impact, safeguards, new assets, people, use of LLMs": [BY_HAND],
    }
    sections = [f"## {title}\n\n" + "\n".join(lines) for title, lines in items.items()]
    return "\n\n".join([f"# Reproducibility checklist: {study.title}", *sections]) + "\n"


def _claims(study: Study, rulings: Sequence[Ruling]) -> Iterator[str]:
    counts = Counter(ruling.verdict for ruling in rulings)
    yield f"Of {wording.count(len(rulings), 'claim')}: {', '.join(f'{n} {word}' for word, n in counts.most_common())}."
    if warning := WARNINGS.get(study.kind({each.run.setting for each in study.trainings})):
        yield warning
    yield "[Each has a page](README.md)."


def _limitations(study: Study, rulings: Sequence[Ruling], missing: Lost) -> Iterator[str]:
    yield f"- Lost: {missing}"
    unjudged = [ruling.claim.id for ruling in rulings if ruling.verdict in ("not judged", "not measured")]
    yield f"- Claims without a verdict: {', '.join(unjudged) or 'none'}."
    yield f"- Models: {', '.join(sorted({each.run.model for each in study.trainings}))}. Others may behave differently."


def _reproducibility(study: Study) -> Iterator[str]:
    told = [each.outcome for each in study.trainings if each.state == FINISHED]
    named = sum(bool(each.get("commit")) for each in told)
    dirty = sum(str(each.get("commit", "")).endswith("-dirty") for each in told)
    sums = sum(bool(each.get("sums")) for each in told)
    answer = "Yes" if told and named == sums == len(told) and not dirty else "In part"
    yield f"**{answer}.** Of {wording.count(len(told), 'finished training')}, {named} name the commit of the code,"
    yield f"{dirty} of them with uncommitted changes, and {sums} the SHA-256 of their outputs. Each run.json holds"
    yield "hyper-parameters, seed and versions of packages. `mcgrpo bundle` packs the study, and `mcgrpo verify`"
    yield "computes its tables again from grades."


def _access(study: Study) -> Iterator[str]:
    yield "- Code: " + ", ".join(f"`{commit}` ({wording.count(n, 'run')})" for commit, n in commits(study.trainings))
    told = [(each.run.dataset, each.outcome["data"]) for each in study.trainings if each.outcome.get("data")]
    data = Counter((name, source["rows"], source["sha256"]) for name, source in told)
    for (name, rows, digest), n in sorted(data.items()):
        yield f"- Training data {name}: {rows:,} rows, SHA-256 `{digest}` ({wording.count(n, 'run')})"
    for kind, word in (("models", "Model"), ("datasets", "Data set")):
        yield from (f"- {word} {name}: {_source(spec)}" for name, spec in study.config[kind].items())


def _source(spec: dict) -> str:
    if "hub" in spec:
        pinned = f"revision `{spec['revision']}`" if is_pinned(spec) else "no revision is pinned (`mcgrpo lock`)"
        return f"{spec['hub']} on the hub, {pinned}"
    return "made by the workflow from the study file" if "toy" in spec else f"the folder {spec['folder']}"


def _details(study: Study) -> Iterator[str]:
    values: dict[str, set[str]] = {}
    for each in study.trainings:
        for key, value in each.run.training.items():
            values.setdefault(key, set()).add(str(value))
    yield "All are in the study file, which says how they were chosen, and in each run.json. The workflow searches over"
    yield "none."
    same = [(key, *each) for key, each in values.items() if len(each) == 1]
    varied = [(key, ", ".join(sorted(each))) for key, each in values.items() if len(each) > 1]
    for title, rows in (("The same wherever it is set", same), ("Differs between trainings", varied)):
        table = pd.DataFrame(rows, columns=[title, "value"])
        yield from ("", table.to_markdown(index=False, disable_numparse=True))


def _significance(study: Study) -> Iterator[str]:
    seeds = Counter(each.run.name.rpartition("/")[0] for each in study.trainings if each.state == FINISHED)
    single = sum(count == 1 for count in seeds.values())
    finished = wording.counts(seeds.values(), "finished seed") if seeds else "no finished seed"
    yield f"**{'In part' if single or not seeds else 'Yes'}.** A cell has {finished}. Intervals are 95%,"
    yield "over seeds and problems as crossed random effects, with Satterthwaite's degrees of freedom; differences are"
    yield "paired by seed and problem. A claim has one endpoint, and its single comparisons have Holm's correction."
    yield "Other intervals are not corrected: expect one false positive in twenty."
    if single:
        yield f"{wording.count(single, 'cell')} with one seed: nothing is known of others."


def _compute(study: Study) -> Iterator[str]:
    yield from (f"- {name}: {value}" for name, value in environment(list(study.trainings)))
    yield from ("", "| stage | jobs | hours |", "|---|---|---|")
    for row in stages(study.files.folder):
        yield f"| {row['rule']} | {row['jobs']} | {row['seconds'] / 3600:,.2f} |"
    yield ""
    if lost := [each.outcome.get("seconds", 0) for each in study.trainings if each.state != FINISHED]:
        yield f"Unfinished trainings took {sum(lost) / 3600:,.2f} hours more, as far as they say."
    yield "Hours are of finished jobs; attempts that were thrown away are not in the records."
