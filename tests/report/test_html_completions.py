"""The completions that the page shows."""

from dataclasses import asdict

import pytest
from page_study import RUNS, PageStudy, few, rollouts

from mcgrpo.files import RecordError, write_jsonl
from mcgrpo.report.page import completions, jobs


@pytest.fixture
def study(tmp_path):
    return PageStudy(tmp_path, few)


class TestCompletions:
    def shown(self, study, **options):
        return completions.completions(study.results, jobs.planned_trainings(study.results), **options)

    def test_the_first_seed_of_each_cell_at_its_first_middle_and_last_step(self, study):
        shown = self.shown(study)
        assert [view.label for view in shown.runs] == [
            *(f"{name}, G={g} · toy_a, seed 0" for g in (2, 4) for name in ("GRPO", "MC-GRPO")),
            "GRPO, G=4, flip-exact-0.25 · toy_a, seed 0",
        ]
        assert [group.step for group in shown.runs[1].groups] == [1, 1, 3, 3, 5, 5]
        group = shown.runs[1].groups[0]
        assert group.prompt.startswith("Question: What is 1 plus 0?")
        assert [(row["reward"], row["pivot"], row["kept"]) for row in group.rollouts] == [
            (0.0, False, True), (1.0, True, False), (1.0, False, True),
        ]  # fmt: skip

    def test_a_prompt_that_comes_twice_in_a_step_makes_two_groups(self, study):
        rows = [*rollouts(3, steps=[1], prompts=1)] * 2
        write_jsonl(study.results / "runs" / RUNS[0].name / "rollouts.jsonl", rows)
        groups = next(view.groups for view in self.shown(study).runs if view.name == RUNS[0].name)
        assert [len(group.rollouts) for group in groups] == [3, 3]

    def test_what_would_not_fit_is_left_out_and_named(self, study):
        size = len(str(self.shown(study).runs[0]))
        shown = self.shown(study, budget=2 * size)
        assert shown.runs and shown.left_out and len(shown.runs) + len(shown.left_out) == shown.chosen == 5

    def test_long_texts_are_cut_and_say_so(self, study):
        path = study.results / "runs" / RUNS[0].name / "rollouts.jsonl"
        write_jsonl(path, rollouts(2, steps=[1], completion="x" * 5000))
        (text, *_) = [row["completion"] for view in self.shown(study).runs if view.name == RUNS[0].name
                      for group in view.groups for row in group.rollouts]  # fmt: skip
        assert text.endswith("x … (1000 characters more in rollouts.jsonl)") and len(text) < 4100

    @pytest.mark.slow
    def test_runs_without_a_file_are_counted_on_the_page(self, study):
        (study.results / "runs" / RUNS[0].name / "rollouts.jsonl").unlink()
        assert self.shown(study).absent == [RUNS[0].name]
        assert f"1 of 5 runs that would be shown here has no <code>rollouts.jsonl</code>: {RUNS[0].name}" in (
            study.made().read_text()
        )

    def test_a_broken_line_is_named(self, study):
        path = study.results / "runs" / RUNS[0].name / "rollouts.jsonl"
        rows = [asdict(row) for row in rollouts(2, steps=[1])]
        del rows[1]["reward"]
        write_jsonl(path, rows)
        with pytest.raises(RecordError, match=r"rollouts\.jsonl:2: field 'reward' is missing"):
            self.shown(study)
