"""The HTML page: the answer first, claims a line each, nothing that it loads."""

import re
from html import unescape

import cells
import pytest
from report_study import COMMIT, RUNS, PageStudy, outcome_of, point, write_results

from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import Cell, CurvePoint
from mcgrpo.report.page import jobs
from mcgrpo.report.page.__main__ import gradients
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import read_plan


@pytest.fixture
def small(tmp_path):
    return PageStudy(tmp_path)


def words(html):
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", html).split()))


def test_the_answer_in_two_parts_and_its_numbers_stand_first(small):
    small.draw("gains-greedy")
    page = small.made("gains-greedy").read_text()
    text = words(page.split("<body>")[1].split("</nav>")[0])
    order = ["Does the median help?", "Inconclusive. MC-GRPO against GRPO+1",
             "Is MC-GRPO better than GRPO at the same G?", "+1.0 [+0.0, +2.0] inconclusive",
             "−6.0 [−7.0, −5.5] worse", "for the number of primary comparisons"]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places) and COMMIT[:10] in text
    assert page.count('id="figure-gains-greedy"') == 1 < page.index('id="claims"')


def test_a_claim_is_a_line_with_verdicts_and_number_and_opens_to_its_comparisons(small):
    page = small.made().read_text()
    (claim,) = re.findall(r'<details class="claim" id="claim-grpo-gains">.*?</details>', page, re.DOTALL)
    line, more = (words(part) for part in claim.split("</summary>"))
    assert line.startswith("holds inconclusive") and "points (greedy), claimed > 0" in line
    assert "toy_a/sums: gain of MC-GRPO at G=2 is +5.0 [+2.0, +8.0] points (greedy), claimed > 0, 5 seeds" in more
    assert "not measured toy_a" not in line


def test_gradients_are_those_of_cells_that_both_methods_are_trained_at(tmp_path):
    places = [("mc-grpo", 2, 1), ("mc-grpo", 2, 2), ("mc-grpo", 2, 3), ("grpo", 2, 1), ("grpo", 2, 2), ("grpo", 2, 3)]
    points = [point(method, size, 0, step) for method, size, step in (*places, ("grpo", 8, 1))]
    train = {"role": "train", "benchmark": "train", "measure": "frac_grad_clipped", "half": None}
    shares = [("mc-grpo", 2, 1.0), ("grpo", 2, 0.0), ("grpo", 8, 0.5)]
    write_results(tmp_path, [cells.cell(method, size, share, **train) for method, size, share in shares], points)
    summary, curves = (read_frame(tmp_path / f"{n}.csv", k) for n, k in (("summary", Cell), ("curves", CurvePoint)))
    curves = curves.assign(grad_norm=[5.0, 7.0, 90.0, 0.1, 0.2, 0.6, 1000.0])
    rows = gradients(summary, curves).frame.to_numpy().tolist()
    assert rows == [["MC-GRPO", "100%", "7", "3"], ["GRPO", "0%", "0.2", "3"]]
    assert gradients(summary, curves[curves.method == "grpo"]) is None


class TestRuns:
    def test_what_is_not_finished_is_listed_with_its_reason(self, small, tmp_path):
        for place in RUNS[:3]:
            (small.results / "runs" / place.name / "run.json").unlink()
        outcome_of(small.results, RUNS[0], "unfinished", status="failed", error="ValueError: no such schedule\nmore")
        outcome_of(small.results, RUNS[1], "unfinished", status="running")
        planned = jobs.planned_trainings(read_plan(small.results / "plan.json"), ResultFiles(small.results))
        flips = [("toy_a/none/G0/default/seed0", "sums")]
        seen = cells.frame(tmp_path, [cells.cell("mc-grpo", 2, 0.5, seeds=2)])
        runs, seeds, unmeasured = jobs.missing(planned, seen, flips)
        found = runs.frame.to_numpy().tolist()
        expected = [["failed", "ValueError: no such schedule"], ["unfinished", ""], ["not started", ""]]
        assert found == [[run.name, *each] for run, each in zip(RUNS, expected, strict=False)]
        assert seeds.frame.to_numpy().tolist() == [["toy_a/mc-grpo/G2/default", "sums", "2/3"]]
        assert unmeasured.frame.to_numpy().tolist() == [list(flips[0])]
        page = small.made().read_text()
        assert "6 finished, 1 failed, 1 unfinished, 1 not started" in page and "The study is not finished" in page
        assert "ValueError: no such schedule" in page and "3 of 9 planned trainings are not finished" in page

    def test_the_environment_is_that_of_the_finished_ones(self, small):
        model = {"path": "resources/toy", "sha256": "0123456789abcdef", "source": {"hub": "org/toy", "commit": "c0"}}
        outcome_of(small.results, RUNS[0], device="NVIDIA H200", commit=f"{COMMIT}-dirty", model=model)
        outcome_of(small.results, RUNS[1], status="failed", device="TPU", started=2_000_000_000.0)
        found = jobs.planned_trainings(read_plan(small.results / "plan.json"), ResultFiles(small.results))
        told = dict(jobs.environment(found).frame.to_numpy().tolist())
        assert told["device"] == "cpu (7 runs), NVIDIA H200 (1 run)" and told["torch"] == "2.13.0"
        assert told[f"model {RUNS[0].model}"] == "hub org/toy, commit c0, all files 0123456789"
        assert jobs.commits(found) == [(COMMIT, 8), (f"{COMMIT}-dirty", 1)]
        assert jobs.ended(found) == "21 November 2026"


def test_what_a_training_wrote_cannot_become_part_of_the_page_which_loads_nothing(small):
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    outcome_of(small.results, RUNS[1], "runs", status="failed", error=hostile)
    small.draw("rewards")
    page = small.made("rewards").read_text()
    assert "<script" not in page and "<img src=x" not in page and "default-src 'none'" in page
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert not [link for link in links if re.match(r"\w+:", link) and link[:5] != "data:"]


def test_the_command_is_that_of_the_study_and_a_missing_input_is_named(small, monkeypatch):
    monkeypatch.setenv("MCGRPO_STUDY_FILES", '["config/mini.yaml", "a study.yaml"]')
    made = f"snakemake {small.reports}/report.html --cores all"
    assert f"{made} --configfile config/mini.yaml &#39;a study.yaml&#39;</code>" in small.made().read_text()
    with pytest.raises(SystemExit, match=r"error: .*ood\.png"):
        small.made("ood")
    (small.results / "curves.csv").unlink()
    with pytest.raises(SystemExit, match=r"error: .*curves\.csv: no such file"):
        small.made()
