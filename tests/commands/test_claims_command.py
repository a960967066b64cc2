"""`mcgrpo claims STUDY.yaml`: the verdicts of a study on a terminal."""

import re

import pytest
from claim_rows import pair, scores_of
from studies import ROOT

from mcgrpo import shipped
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.analyse.records import Contrast
from mcgrpo.commands.claims import main
from mcgrpo.sums import write_table

MINI = ROOT / "config/mini.yaml"


def test_a_study_has_its_verdicts_beside_the_papers_and_their_totals(printed, here):
    claims = read_claims(shipped.CLAIMS)
    scores = scores_of(*(pair(0.05, 0.01, budget=size) for size in (2, 4, 8)))
    rows = contrasts(claims, scores, {key.without_measure for key in scores})
    write_table(here / "results/mini/comparisons.csv", Contrast, rows)
    text = printed(main, MINI)
    assert re.search(r"^grpo-gains +holds +holds$", text, re.MULTILINE)
    assert re.search(
        r"^By this study: \d+ hold, .* of \d+ tested claims, up to [\d.]+ are expected", text, re.MULTILINE
    )
    assert max(map(len, text.splitlines()[:-2])) < 100


def test_without_results_the_error_names_what_is_not_there(printed):
    with pytest.raises(SystemExit, match=r"error: results/mini/comparisons\.csv: no such file: run study 'mini' first"):
        printed(main, MINI)
