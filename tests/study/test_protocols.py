"""Protocols: what the release changes, for whom, and that every change is one that a run can be given."""

import dataclasses
from pathlib import Path

import pytest

from mcgrpo.grade.tasks import TASKS
from mcgrpo.study.methods import METHODS
from mcgrpo.study.protocols import SWITCHES, switches_table, training_changes

BEST = {"select_checkpoint": "best-on-test"}
POSITION = {"group_by": "position", **BEST}
PLUS1 = {"drop_rule": "reward", **POSITION}
MEDIAN_GSM8K = {"rescale_by_nonzero": True, **POSITION}
COUNTED = {"count_dropped_tokens": True}

EXPECTED = {
    ("gsm8k", "grpo"): {"estimator": "mean-std-plus1", **PLUS1},
    ("gsm8k", "dapo"): {"estimator": "mean-std-plus1", **PLUS1, **COUNTED},
    ("gsm8k", "dr-grpo"): {"estimator": "mean-std-plus1", **PLUS1},
    ("gsm8k", "grpo-plus1"): PLUS1,
    ("gsm8k", "mc-grpo"): MEDIAN_GSM8K,
    ("gsm8k", "mc-dapo"): {**MEDIAN_GSM8K, **COUNTED},
    ("gsm8k", "mc-dr-grpo"): {"estimator": "median-mad", **MEDIAN_GSM8K},
    ("math", "grpo"): BEST,
    ("math", "dapo"): BEST,
    ("math", "dr-grpo"): {"estimator": "mean-std", **BEST},
    ("math", "mc-grpo"): POSITION,
    ("math", "mc-dapo"): {**POSITION, **COUNTED},
    ("math", "mc-dr-grpo"): {"estimator": "median-mad", **POSITION},
}
REFUSED = {("math", "grpo-plus1")}


def test_every_method_and_task_is_settled():
    assert EXPECTED.keys() | REFUSED == {(task, method) for task in TASKS for method in METHODS}


@pytest.mark.parametrize(("task", "method"), EXPECTED)
def test_released(task, method):
    assert training_changes("released", method, task) == EXPECTED[task, method]


def test_the_paper_changes_nothing_and_the_release_cannot_run_all():
    assert training_changes("paper", "mc-grpo", "gsm8k") == {}
    with pytest.raises(ValueError, match="cannot be run as released on math"):
        training_changes("released", "grpo-plus1", "math")


class TestTable:
    def test_every_row_differs_and_names_its_source(self):
        for row in SWITCHES:
            assert row.paper != row.released
            assert ".py" in row.source or "scripts/" in row.source
            assert "P:" in row.source or "paper" in row.source

    def test_the_documentation_has_it(self):
        begin, end = "`python -m mcgrpo.study.protocols`) -->\n", "\n<!-- protocols: end -->"
        text = (Path(__file__).parents[2] / "config/README.md").read_text()
        assert text.split(begin)[1].split(end)[0] == switches_table()
        assert len(switches_table().splitlines()) == len(SWITCHES) + 2


class TestAgainstTheTrainer:
    def test_every_key_is_a_field_whose_default_is_the_papers_value(self):
        from mcgrpo.train.released import ReleasedConfig

        defaults = {field.name: field.default for field in dataclasses.fields(ReleasedConfig)}
        for row in SWITCHES:
            if row.key not in ("estimator", "select_checkpoint"):
                assert defaults[row.key] == row.paper

    @pytest.mark.parametrize(("task", "method"), EXPECTED)
    def test_every_change_makes_a_configuration(self, task, method, tmp_path):
        from mcgrpo.train.released import ReleasedConfig

        changes = training_changes("released", method, task)
        del changes["select_checkpoint"]
        estimator = changes.pop("estimator", METHODS[method].estimator)
        config = ReleasedConfig(
            output_dir=str(tmp_path),
            use_cpu=True,
            bf16=False,
            loss_type=METHODS[method].loss_type,
            estimator=estimator,
            **changes,
        )
        assert config.num_extra_rollouts == (1 if task == "gsm8k" or method.startswith("mc-") else 0)
