import csv
import io
import math
import re
from urllib.parse import unquote

import cells
import pytest
from answers import answer_of, plan_of
from claim_rows import claim, claims_of, gain, pair, scores_of
from page_study import COMMIT, ROOT, RUNS, PageStudy, few, outcome_of, run, summary
from synthetic import summary_frame

from mcgrpo import shipped
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.files import write_json
from mcgrpo.report.catalogue import FIGURES
from mcgrpo.report.claims.judge import judge
from mcgrpo.report.claims.tables import counts
from mcgrpo.report.page import contents, jobs, verdicts
from mcgrpo.report.page import write as html

GAIN, WIDE = (0.05, 0.04, 0.06), (0.01, -0.1, 0.12)


@pytest.fixture
def study(tmp_path):
    return PageStudy(tmp_path)


@pytest.fixture
def small(tmp_path):
    return PageStudy(tmp_path, few)


class TestTheAnswer:
    def test_both_parts_stand_above_their_numbers(self, small):
        page = small.made().read_text()
        words = " ".join(re.sub(r"<[^>]+>", " ", page.split("</nav>")[0]).split())
        control, main = words.index("Not shown. MC-GRPO against GRPO+1"), words.index("Is MC-GRPO better than GRPO at")
        assert control < main < words.index("+1.0 [+0.0, +2.0] not shown") < words.index("+5.0 [+2.0, +8.0] better")
        assert "corrected for the number of comparisons with the same baseline" in words

    def test_a_study_that_compares_nothing_has_no_table_of_it(self):
        assert contents.answer_view(answer_of(plan_of([], baselines=()), {})) is None

    def test_the_figure_of_the_gains_is_shown_once_above_the_claims(self, small):
        small.draw(["gains-greedy"], side=30)
        page = small.made("gains-greedy").read_text()
        assert page.count('id="figure-gains-greedy"') == 1
        assert page.index('id="figure-gains-greedy"') < page.index('id="claims"')


class TestTheClaims:
    def test_each_has_both_verdicts_and_the_n_behind_ours(self, tmp_path):
        rows = [cells.cell("mc-grpo", 2, 0.5, gain=GAIN), cells.cell("mc-grpo", 4, 0.5, gain=WIDE)]
        flips = cells.cell("none", 0, 0.5, role="flips", measure="mean/oracle-mean/strict/k2/exact", n=7)
        summary = cells.frame(tmp_path, [flips, *rows])
        asked = claims_of(tmp_path, claim(gain(2, above=0), gain(4, above=0)), claim(gain(8, above=0), id="other"))
        scores = scores_of(pair(0.05, 0.01, setting="toy_a"), pair(0.0, 0.05, budget=4, setting="toy_a"))
        ours = judge(asked, contrasts(asked, scores, {key.without_measure for key in scores}), "ours")
        published = judge(asked, contrasts(asked, {}, []), "published")
        first, second = verdicts.claim_rows(published, ours, summary)
        assert (first.published.verdict, first.ours.verdict) == ("not measured", "inconclusive")
        assert first.n == "5 seeds; 100 problems; 2 comparisons"
        assert [verdict for verdict, _ in first.ours.findings] == ["holds", "inconclusive"]
        assert "toy_a/sums: gain of MC-GRPO at G=2 is +5.0 [+4.0, +6.0] points" in first.ours.findings[0][1]
        assert (second.ours.verdict, second.n) == ("not measured", "–")
        assert counts(ours) == {"inconclusive": 1, "not measured": 1}


class TestTables:
    def test_heads_span_the_rows_that_share_them(self, tmp_path):
        views = {view.table.name: view for view in contents.table_views(cells.frame(tmp_path, cells.study()))}
        main = views["main"]
        assert [heads for heads, *_ in main.rows] == [[("toy_a", 5), ("sums", 5)], [], [], [], []]
        assert len(main.table.headings) == 2 + len(main.rows[0][1])

    @pytest.mark.slow
    def test_every_row_fills_its_headings(self, tmp_path):
        views = contents.table_views(summary_frame(tmp_path, summary(("toy_a", "toy_b"))))
        assert len(views) == 9
        for view in views:
            blocks = len(view.table.lines[0].block)
            open_until = [0] * blocks
            for number, (heads, entries, *_) in enumerate(view.rows):
                for place, (_, span) in zip(range(blocks - len(heads), blocks), heads, strict=True):
                    assert open_until[place] == number
                    open_until[place] = number + span
                assert min(open_until) > number and blocks + len(entries) == len(view.table.headings)

    def test_each_has_its_n_and_its_cells_to_take_along(self, tmp_path):
        views = {view.table.name: view for view in contents.table_views(cells.frame(tmp_path, cells.study()))}
        assert views["main"].n == "3 seeds planned, 0 to 3 there of each trained cell; 100 problems on sums"
        kind, text = views["main"].csv.split(",", 1)
        rows = list(csv.DictReader(io.StringIO(unquote(text))))
        assert kind == "data:text/csv;charset=utf-8"
        assert {row["method"] for row in rows} == {"none", "grpo", "mc-grpo"} and rows[0]["mean"] == "0.3"
        assert "| MC-GRPO" in unquote(views["main"].markdown)


class TestFigures:
    def test_every_figure_has_a_caption_and_an_n(self, study):
        kinds = {"summary": html.Cell, "gains": html.Gain, "curves": html.CurvePoint, "signal_curves": html.SignalPoint}
        frames = {name: html.read_frame(study.results / f"{name}.csv", kind) for name, kind in kinds.items()}
        views = contents.figure_views(list(FIGURES), study.reports, ROOT / "workflow/report", frames)
        assert all(view.title and view.caption.endswith(".") for view in views)
        told = {view.name: view.n for view in views}
        assert told["accuracy-greedy"] == "5 seeds planned, 0 to 5 there of each trained cell; 100 problems on sums"
        assert told["rewards"] == "36 runs, 3 seeds a cell, 3 steps each"
        assert told["signal"] == "computed from the rewards of toy_a/none/G0/default/seed0"
        assert told["ood"] == "5 seeds of each trained cell; 100 problems on far"
        assert all("nothing" not in n for n in told.values())
        assert all(view.image == "" for view in views)

    def test_without_a_caption_the_file_is_named(self, study, tmp_path):
        with pytest.raises(ValueError, match=r"rewards\.rst: no caption"):
            contents.figure_views(["rewards"], study.reports, tmp_path, {"summary": None, "curves": None})

    @pytest.mark.slow
    def test_a_picture_is_shown_at_a_size_at_which_its_type_is_read(self, study):
        study.draw(["rewards"])
        page = study.made("rewards", "ood").read_text()
        assert re.search(r'<img src="data:image/png;base64,[^"]{1000,}" alt="Reward over training\. [^"]+"', page)
        assert 'width="252" height="126"' in page
        assert "Figures that have not been drawn: Accuracy out of distribution." in page


class TestRuns:
    def test_what_is_not_finished_is_listed_with_its_reason(self, small):
        for place in RUNS[:3]:
            (small.results / "runs" / place.name / "run.json").unlink()
        outcome_of(small.results, RUNS[0], "unfinished", status="failed", error="ValueError: no such schedule\nmore")
        outcome_of(small.results, RUNS[1], "unfinished", status="running")
        found = jobs.missing_runs(jobs.planned_trainings(small.results))
        assert found == [
            (RUNS[0].name, "failed", "ValueError: no such schedule"),
            (RUNS[1].name, "unfinished", ""),
            (RUNS[2].name, "not started", ""),
        ]
        page = small.made().read_text()
        assert "6 finished, 1 failed, 1 unfinished, 1 not started" in page and "The study is not finished" in page
        assert "ValueError: no such schedule" in page and "3 of 9 planned trainings are not finished" in page

    def test_untrained_models_are_no_trainings(self, small):
        write_json(small.results / "plan.json", {"study": "toy", "runs": [vars(run("none", 0)), vars(RUNS[0])]})
        assert [training.run.name for training in jobs.planned_trainings(small.results)] == [RUNS[0].name]

    def test_environments_that_differ_are_counted(self, small):
        outcome_of(small.results, RUNS[0], device="NVIDIA H200", commit=f"{COMMIT}-dirty")
        found = jobs.planned_trainings(small.results)
        told = dict(jobs.environment(found))
        assert told["Device"] == "cpu (8 runs), NVIDIA H200 (1 run)" and told["torch"] == "2.13.0"
        assert jobs.commits(found) == [(COMMIT, 8), (f"{COMMIT}-dirty", 1)]
        assert jobs.ended(found) == "21 November 2026"

    def test_the_environment_is_that_of_the_finished_ones_which_the_caption_counts(self, small):
        outcome_of(small.results, RUNS[0], "runs", status="failed", device="NVIDIA H200")
        assert dict(jobs.environment(jobs.planned_trainings(small.results)))["Device"] == "cpu"
        page = small.made().read_text()
        assert "The environment of 8 finished trainings" in page and "NVIDIA H200" not in page

    def test_times_are_added_up_by_rule(self, small):
        assert jobs.stages(small.results) == [
            {"rule": "train", "jobs": 2, "seconds": 90.0, "longest": 60.0},
            {"rule": "tables", "jobs": 1, "seconds": 5.0, "longest": 5.0},
        ]

    def test_cells_without_all_their_seeds_are_listed(self, tmp_path):
        summary = cells.frame(tmp_path, [cells.cell("mc-grpo", 2, 0.5, seeds=2), cells.cell("grpo", 2, 0.5)])
        assert jobs.missing_cells(summary) == [("toy_a/mc-grpo/G2/default", "sums", "2/3")]


class TestThePage:
    @pytest.mark.slow
    def test_it_needs_nothing_from_elsewhere(self, study):
        study.draw(side=30)
        page = study.made(*FIGURES).read_text()
        assert "default-src 'none'" in page
        links = re.findall(r'(?:src|href)="([^"]*)"', page)
        assert len(links) > 30 and not [link for link in links if re.match(r"\w+:", link) and link[:5] != "data:"]
        assert not re.search(r"@import|url\(|<script[^>]+src=|<link[^>]+stylesheet", page)

    def test_the_first_words_are_the_question_and_its_answer(self, small):
        body = small.made().read_text().split("<body>")[1]
        words = " ".join(re.sub(r"<[^>]+>", " ", body).split())
        assert "Does the median help?" in words[:400] and COMMIT[:10] in words[:300]

    def test_what_a_training_wrote_cannot_become_part_of_the_page(self, small):
        hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
        outcome_of(small.results, RUNS[1], "runs", status="failed", error=hostile)
        page = small.made().read_text()
        assert "<script>alert" not in page and "<img src=x" not in page

    @pytest.mark.slow
    def test_links_lead_from_the_page_to_its_sources(self, small):
        page = small.made("rewards")
        for link in set(re.findall(r'href="(\.\./[^"]*)"', page.read_text())):
            assert (page.parent / link).exists()

    def test_one_that_would_be_too_large_is_refused(self, small, monkeypatch):
        monkeypatch.setattr(html, "LARGEST", 10_000)
        with pytest.raises(SystemExit, match=r"error: .*report\.html would have .* MB, over"):
            small.made()
        assert not (small.reports / "report.html").exists()

    def test_a_missing_input_is_named(self, small):
        (small.results / "curves.csv").unlink()
        with pytest.raises(SystemExit, match=r"error: .*curves\.csv: no such file"):
            small.made()

    @pytest.mark.parametrize(("seconds", "text"), [(0.44, "0.4 s"), (48.4, "48 s"), (312, "5 min 12 s"), (12000, "3 h 20 min")])  # fmt: skip  # noqa: E501
    def test_durations_are_said_as_people_do(self, seconds, text):
        assert html.duration(seconds) == text

    def test_the_command_is_that_of_the_study(self, small, monkeypatch):
        monkeypatch.setenv("MCGRPO_STUDY_FILES", '["config/mini.yaml", "a study.yaml"]')
        text = small.made().read_text()
        made = f"snakemake {small.reports}/report.html --cores all"
        assert f"{made} --configfile config/mini.yaml &#39;a study.yaml&#39;</code>" in text
        monkeypatch.delenv("MCGRPO_STUDY_FILES")
        assert f"{made}</code>" in small.made().read_text()

    def test_colours_are_told_apart_from_their_grounds(self):
        """Contrast of text on its background, by WCAG 2: at least 4.5, in light and in dark."""
        css = (shipped.PAGE / "style.css").read_text()
        themes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in css.split("@media")[:2]]
        inks = ("ink", "soft", "link", "good", "bad")
        pairs = [(ink, ground) for ink in inks for ground in ("paper", "card", "shade")]
        pairs += [(name, f"{name}-wash") for name in ("good", "bad", "same", "none", "amber")]
        for theme in themes:
            found = {(ink, ground): contrast(theme[ink], theme[ground]) for ink, ground in pairs}
            assert {pair: ratio for pair, ratio in found.items() if ratio < 4.5} == {}


def contrast(a: str, b: str) -> float:
    def luminance(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else math.pow((part + 0.055) / 1.055, 2.4) for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)
