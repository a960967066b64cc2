"""A stage whose disk is full ends with one line that names the file."""

import json
from pathlib import Path

import pytest
from report_study import write_results
from studies import load

from mcgrpo.analyse import comparisons
from mcgrpo.analyse.scored import write_scores
from mcgrpo.data import datasets, local_model
from mcgrpo.files import write_jsonl
from mcgrpo.grade import completions
from mcgrpo.records import Completion
from mcgrpo.report.claims import __main__ as claims
from mcgrpo.report.page import __main__ as page
from mcgrpo.report.tables import __main__ as tables
from mcgrpo.study import plan
from mcgrpo.sums import seal

GSM8K = json.dumps({"task": "gsm8k", "folder": str(Path(__file__).parents[1] / "data/gsm8k")})
STAGES = {
    datasets: ("--spec", GSM8K, "--output", "data.jsonl"),
    local_model: ("--folder", str(Path(__file__).parent), "--output", "local.sha256"),
    plan: ("--config", json.dumps(load("mini")), "--output", "plan.json"),
    completions: ("--input", "drawn.jsonl", "--output", "grades.jsonl", "--task", "gsm8k"),
    comparisons: ("--results", "."),
    tables: ("--results", ".", "--output", "reports"),
    claims: ("--results", ".", "--output", "reports"),
    page: ("--results", ".", "--reports", "reports"),
}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
def test_a_full_disk_is_one_line(stage, small_disk, monkeypatch):
    monkeypatch.chdir(small_disk)
    write_results(small_disk)
    write_scores(small_disk / "scores.jsonl", [])
    (small_disk / "reports").mkdir()
    write_jsonl(small_disk / "drawn.jsonl", [Completion("a", 0, "<answer>1</answer>", "1")])
    seal(small_disk / "drawn.jsonl")
    with pytest.raises(OSError, match="No space left"), (small_disk / "filler").open("wb") as filler:
        for _ in range(2**11):
            filler.write(bytes(2**10))
            filler.flush()
    monkeypatch.setattr("sys.argv", [stage.__name__, *STAGES[stage]])
    with pytest.raises(SystemExit, match=r"^error: \S+: No space left on device$"):
        stage.main()
