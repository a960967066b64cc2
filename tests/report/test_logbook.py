"""The pages of a study's logbook, from records on disk."""

import json
from dataclasses import asdict

import pandas as pd
import pytest
import studies
from claim_rows import pair, scores_of
from page_study import OUTCOME, outcome_of, run

from mcgrpo import shipped
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.analyse.records import Contrast, Score
from mcgrpo.files import write_csv, write_json, write_jsonl
from mcgrpo.records import Group
from mcgrpo.report.logbook.__main__ import logbook, read

MINI = studies.load("mini")
SETTING = {"models": {"toy": MINI["models"]["toy-qwen3"]}, "datasets": MINI["datasets"]}
CONFIG = {**SETTING, "study": "toy", "settings": {"toy_a": {**MINI["settings"]["toy-qwen3"], "model": "toy"}}}
RUNS = [run(method, 2, seed) for method in ("grpo", "mc-grpo") for seed in (0, 1, 2)]


def score(run, measure, value, n=100):
    key = {name: getattr(run, name) for name in ("setting", "method", "num_generations", "variant", "seed")}
    return Score(**key, benchmark="sums", role="in", measure=measure, value=value, n=n)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Six trainings: one failed; another has two rollouts without a reward, and 3% unparseable completions."""
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results/toy"
    names = [each.name for each in RUNS]
    plan = {"study": "toy", "runs": list(map(asdict, RUNS)), "measures": ["greedy", "avg@4"], "flips": {}}
    write_json(results / "plan.json", plan | {"evaluations": {name: {"sums": "in"} for name in names}})
    *finished, failed = RUNS
    for each in finished:
        outcome_of(results, each, seconds=3600.0)
        rewards = [None, None, 1.0] if each is finished[0] else [0.0, 1.0, 1.0]
        group = Group(1, 0, rewards, [0.0] * 3, [1, 1, 0], [4, 4, 4])
        write_jsonl(results / "runs" / each.name / "groups.jsonl", [group, group])
    outcome_of(results, failed, "unfinished", status="failed")
    scores = [score(each, "rate-unparseable", 0.03 if each is finished[0] else 0.0) for each in finished]
    scores += [score(each, f"rate-{verdict}", 0.0) for each in finished for verdict in ("timeout", "error")]
    write_csv(results / "scores.csv", Score, scores)
    of = scores_of(*(pair(gain, 0.03, budget=g, setting="toy_a") for g, gain in ((2, 0.05), (4, -0.04), (8, 0.0))))
    rows = contrasts(read_claims(shipped.CLAIMS), of, {key.without_measure for key in of})
    write_csv(results / "contrasts.csv", Contrast, rows)
    return results


def pages(**changes):
    return logbook(read({**CONFIG, **changes}, price=2.0))


def test_a_page_says_what_was_claimed_measured_spent_lost_and_left_out(study):
    found = pages()
    text = found["near-grpo-8.md"]
    assert text.startswith("# near-grpo-8\n\n> MC-GRPO with 2 rollouts comes close to GRPO with 8.")
    assert "it is at most 1 point below" in text and "Introduction, P:110" in text
    for part in ("## Scope", "## Evidence", "## Hardware, compute and cost", "## What was left out"):
        assert part in text
    assert "- Settings: toy_a" in text and OUTCOME["commit"] in text
    assert "does not have: qwen3-1.7b-gsm8k" in text
    assert "Not measured" in found["composite-gains.md"]


def test_every_claim_has_a_page_and_the_list_names_all(study):
    found = pages()
    claims = [claim.id for claim in read_claims(shipped.CLAIMS)]
    assert set(found) == {"README.md", "checklist.md", *(f"{name}.md" for name in claims)}
    assert all(f"({name}.md)" in found["README.md"] for name in claims)


def test_what_was_lost_is_counted_from_the_records(study):
    lost = next(line for line in pages()["README.md"].splitlines() if line.startswith("**Lost:**"))
    assert lost == (
        "**Lost:** 1 of 6 trainings (1 failed); 1 evaluation without a score; 4 of 30 rollouts unscorable; "
        "of 2,500 graded completions 15 unparseable, 0 timed out in grading, 0 failed in grading."
    )


@pytest.mark.slow
def test_compute_and_cost_are_those_of_finished_trainings(study):
    text = pages()["few-rollouts-cost-accuracy.md"]
    assert "3 finished trainings, 3.00 hours on a CPU" in text and "- Cost: 6.00, at 2 an hour" in text
    assert "(`--price`)" in logbook(read(CONFIG))["few-rollouts-cost-accuracy.md"]


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (MINI["models"]["toy-qwen3"], "(toy models)"),
        ({"hub": "org/other"}, "(other models than the paper's)"),
        ({"hub": "Qwen/Qwen3-1.7B"}, ""),
    ],
)
def test_a_verdict_on_other_models_than_the_papers_says_so(study, model, label):
    found = pages(models={"toy": model})
    rows = [line for line in found["README.md"].splitlines() if line.startswith("| [")]
    ours = [row.split("|")[2].strip() for row in rows]
    judged = [each for each in ours if each.split(" (")[0] in ("holds", "fails", "inconclusive")]
    assert judged and all(each.endswith(label) and (label or "(" not in each) for each in judged)
    assert ("**Toy study.**" in found["README.md"]) == ("toy" in label)


@pytest.mark.slow
def test_the_checklist_answers_from_run_records_and_leaves_the_rest(study):
    text = pages()["checklist.md"]
    assert "A cell has 2 to 3 finished seeds" in text and "| train |" not in text
    assert "**In part.** Of 5 finished trainings, 5 name the commit of the code,\n0 of them" in text
    for number in (1, 2, 3, 4, 5, 6, 7, 8, 12):
        assert f"\n## {number}. " in text
    path = study / "runs" / RUNS[0].name / "run.json"
    record = json.loads(path.read_text())
    record["outcome"]["commit"] += "-dirty"
    path.write_text(json.dumps(record))
    assert "1 of them with uncommitted changes" in pages()["checklist.md"]


def test_its_tables_are_tables(study):
    """Every row of a page's table has as many cells as its heading."""
    found = pages()
    for text in found.values():
        for block in text.split("\n\n"):
            lines = [line for line in block.splitlines() if line.startswith("|")]
            assert len({line.count("|") for line in lines}) <= 1
    assert pd.Series(found).str.contains("nan").sum() == 0
