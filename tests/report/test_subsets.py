"""Any methods make a study: what its summary says is written whatever stands beside each of them."""

import claim_rows
import pytest
from answers import BASELINES, answer_of, plan_of
from cells import cell, frame, write_cells
from report_study import PageStudy, write_results

from mcgrpo import shipped
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.report.claims.judge import judge
from mcgrpo.report.claims.tables import write_rulings
from mcgrpo.report.tables.__main__ import write_tables
from mcgrpo.study.methods import METHODS
from mcgrpo.study.paths import ResultFiles

CLAIMS = read_claims(shipped.CLAIMS)
BESIDE = [(each.baseline, name) for name, each in METHODS.items() if each.baseline]
SUBSETS = [*((name,) for name in METHODS), *BESIDE, ("mc-grpo", "grpo-plus1"), ("dapo", "mc-grpo"), (*METHODS,)]
"""Each alone, beside what it is compared with, beside a stranger, and all."""


def cells_of(methods):
    """As `mcgrpo.analyse.summarise` writes them: a baseline is named where the study plans it."""
    yield cell("none", 0, 0.3)
    for method in methods:
        baseline = METHODS[method].baseline if METHODS[method].baseline in methods else None
        yield cell(method, 2, 0.5, baseline=baseline, gain=(0.05, 0.04, 0.06) if baseline else None)


def scores_of(methods):
    return claim_rows.scores_of(*(claim_rows.cell(method, budget, 0.5) for method in methods for budget in (2, 4, 8)))


def contrasts_of(methods):
    """The project's claims over these scores."""
    scores = scores_of(methods)
    return contrasts(CLAIMS, scores, {key.without_measure for key in scores})


@pytest.mark.parametrize("methods", SUBSETS, ids="+".join)
def test_the_tables_the_answer_and_the_claims_are_written(tmp_path, methods):
    baselines = [each for each in BASELINES if {each, "mc-grpo"} <= set(methods)]
    found = answer_of(plan_of(["toy"], baselines=baselines), scores_of(methods))
    write_tables(frame(tmp_path, cells_of(methods)), found, tmp_path)
    answered = (tmp_path / "headline.md").read_text().splitlines()[0]
    assert ("Not asked" in answered) is ("grpo-plus1" not in baselines)
    assert all(METHODS[method].label in (tmp_path / "tables.md").read_text() for method in methods)
    rulings = judge(CLAIMS, contrasts_of(methods), "ours")
    write_rulings([rulings], tmp_path, "")
    judged = {ruling.claim.id: any(row.value is not None for row in ruling.findings) for ruling in rulings}
    for name, wanted in {"grpo-gains": {"grpo", "mc-grpo"}, "dapo-gains": {"dapo", "mc-dapo"}}.items():
        assert judged[name] == (wanted <= set(methods)), name


@pytest.mark.parametrize("methods", [("grpo",), ("mc-grpo",), ("dapo", "mc-grpo")], ids="+".join)
def test_the_page_is_written(tmp_path, methods):
    study = PageStudy(tmp_path)
    write_results(study.results, [*cells_of(methods)])
    write_cells(ResultFiles(study.results), cells_of(methods), contrasts_of(methods))
    page = study.made().read_text()
    assert "Not asked." in page and all(METHODS[method].label in page for method in methods)
