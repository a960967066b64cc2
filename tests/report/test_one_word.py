"""One number, one word: wherever a report prints the difference of two cells, it has the same verdict."""

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from answers import comparisons_of, plan_of, planned_by
from claim_rows import simulated
from printed_words import rows_of_page, tables_of, words_of_answer, words_of_claims, words_of_row

from mcgrpo import shipped
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.records import Cell, CellSignal, Contrast, CurvePoint
from mcgrpo.analyse.summarise import summarise
from mcgrpo.report.claims.__main__ import main as claims
from mcgrpo.report.page.__main__ import main as page
from mcgrpo.report.tables.__main__ import main as tables
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import write_plan
from mcgrpo.sums import write_table

ROOT = Path(__file__).parents[2]
METHODS = ("grpo", "mc-grpo", "grpo-plus1", "dapo", "mc-dapo")
CELLS = [(method, size, "default") for method in METHODS for size in (2, 4, 8)]
CELLS += [("grpo", 2, "rival-sign"), ("grpo", 8, "flip-0.05"), ("mc-grpo", 2, "mad-zero-std")]


def write_study(folder):
    """A study with gains of none to five standard errors, at which a correction decides, and its whole report."""
    generator, files = np.random.default_rng(1), ResultFiles(folder / "results")
    truths = {
        CellKey(setting, variant, "in", "sums", measure, size, method): 0.01 * generator.integers(6)
        for setting in ("a", "b") for method, size, variant in CELLS for measure in ("greedy", "avg@4")
    }  # fmt: skip
    scores = simulated(generator, truths)
    asked = plan_of(["a", "b"], (2, 4, 8), measures=("avg@4", "greedy"))
    plan = replace(planned_by(asked, scores), equivalence_margin=0.04)
    write_plan(files.plan, plan)
    write_table(files.summary, Cell, summarise(plan, scores))
    write_table(files.comparisons, Contrast, comparisons_of(plan, scores, claims=read_claims(shipped.CLAIMS)))
    write_table(files.curves, CurvePoint, [])
    write_table(files.signals, CellSignal, [])
    for stage in (tables, claims):
        stage(["--results", str(files.folder), "--output", str(folder / "reports")])
    page(["--results", str(files.folder), "--reports", str(folder / "reports")])
    return folder / "reports"


def differing(places, least):
    """Pairs that places do not agree on; at least so many pairs stand in several."""
    words = defaultdict(dict)
    for place, found in places.items():
        for pair, word in found:
            words[pair].setdefault(word, place)
    seen = defaultdict(set)
    for place, found in places.items():
        for pair, _ in found:
            seen[pair].add(place)
    assert sum(len(each) > 1 for each in seen.values()) >= least
    return {pair: each for pair, each in words.items() if len(each) > 1}


def test_tables_answer_claims_and_page_give_one_pair_one_word(made_once):
    folder = made_once("one-word", write_study) / "reports"
    markdown = (folder / "tables.md").read_text()
    places = {
        f"table {number}": [each for row in rows for each in words_of_row(row, "sampled")]
        for number, rows in enumerate(tables_of(markdown))
    }
    places["answer"] = [*words_of_answer((folder / "headline.md").read_text(), "sampled")]
    places["claims"] = [*words_of_claims(folder / "claims.csv")]
    html = (folder / "report.html").read_text()
    places["page"] = [each for row in rows_of_page(html) for each in words_of_row(row, "sampled")]
    assert all(places[name] for name in ("answer", "claims", "page"))
    assert {word for found in places.values() for _, word in found} == {"better", "worse", "equivalent", "inconclusive"}
    assert differing(places, least=40) == {}


def test_a_word_that_another_place_does_not_give_is_found():
    pair = ("a", "sums", "greedy", ("MC-GRPO", "2", "default"), ("GRPO", "2", "default"))
    assert differing({"table": [(pair, "better")], "answer": [(pair, "inconclusive")]}, least=1)


def blocks():
    """Every generated block of a page that says which study it is of."""
    for name in ("README.md", "docs/mini-study.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for mark, body in re.findall(r"<!-- (\w+): begin.*?-->(.*?)<!-- \1: end -->", text, re.DOTALL):
            if "at commit `" in body:
                yield pytest.param(body, id=f"{name}-{mark}")


@pytest.mark.parametrize("body", [*blocks()])
def test_a_generated_block_gives_one_pair_one_word(body):
    places = {
        f"table {number}": [each for row in rows for each in words_of_row(row, "sampled")]
        for number, rows in enumerate(tables_of(body))
    }
    places["answer"] = [*words_of_answer(body, "sampled")]
    assert any(places.values())
    assert not differing(places, least=0)
