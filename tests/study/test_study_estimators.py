import sys
from dataclasses import replace
from pathlib import Path

import pytest
import studies
import yaml

from mcgrpo.estimators import ESTIMATORS, get_estimator
from mcgrpo.study.check import StudyError, check
from mcgrpo.study.estimators import EXTRA_ROLLOUTS, check_estimator, drawn, extra_rollouts, planned_extra, training_code
from mcgrpo.study.plan import expand

MINI = studies.load("mini")
SCHEMA = yaml.safe_load((studies.ROOT / "workflow/schemas/study.schema.yaml").read_text())
OWN = '''
"""Somebody's own."""
from helpers_of_mine import extremes
from mcgrpo.estimators import Estimator


def centre(rewards):
    return sum(extremes(rewards)) / 2


midrange = Estimator(centre, extra_rollouts=2)
'''
HELPERS = """
def extremes(rewards):
    return rewards.nan_to_num(nan=9e9).amin(1, True), rewards.nan_to_num(nan=-9e9).amax(1, True)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to run a study in, with an estimator of somebody's own."""
    monkeypatch.chdir(tmp_path)
    Path("my_estimators.py").write_text(OWN)
    Path("helpers_of_mine.py").write_text(HELPERS)
    extra_rollouts.cache_clear()
    yield tmp_path
    for name in ("my_estimators", "helpers_of_mine"):
        sys.modules.pop(name, None)


def changed(file, old, new):
    text = Path(file).read_text()
    assert old in text
    Path(file).write_text(text.replace(old, new))


def test_it_knows_all_estimators_and_their_extra_rollouts():
    assert {name: estimator.extra_rollouts for name, estimator in ESTIMATORS.items()} == EXTRA_ROLLOUTS


class TestOnesOwn:
    def test_draws_what_it_says_or_the_run_says_and_only_it_is_imported_for(self, here):
        run = next(entry.run for entry in expand(MINI).values() if entry.run.method == "grpo")
        own = replace(run, estimator="my_estimators:midrange")
        assert planned_extra(own) is None and "my_estimators" not in sys.modules
        assert planned_extra(replace(own, training=own.training | {"extra_rollouts": 3})) == 3
        assert drawn(own) == run.num_generations + 2 and planned_extra(run) == 0

    def test_is_found_in_the_folder_of_the_study_without_being_imported(self, here):
        check_estimator("my_estimators:midrange")
        assert training_code("my_estimators:midrange") != training_code("median")
        assert "my_estimators" not in sys.modules

    def test_is_found_by_what_trains_too(self, here):
        before = list(sys.path)
        assert get_estimator("my_estimators:midrange").extra_rollouts == 2
        assert sys.path == before

    def test_counts_its_rollouts_in_the_plan(self, here):
        study = studies.changed(
            MINI, {"variants": {"fixed-rows": {"training": {"estimator": "my_estimators:midrange"}}}}
        )
        run = expand(study)["toy-qwen3/grpo/G4/fixed-rows/seed0"].run
        assert run.estimator == "my_estimators:midrange"
        assert drawn(replace(run, num_generations=4)) == 6

    @pytest.mark.parametrize(
        ("file", "change", "trains_anew"),
        [
            ("my_estimators.py", ("/ 2", "/ 3"), True),
            ("my_estimators.py", ("extra_rollouts=2", "extra_rollouts=1"), True),
            ("helpers_of_mine.py", ("nan=9e9", "nan=8e8"), True),
            ("my_estimators.py", ("Somebody's own", "Nobody's"), False),
            ("my_estimators.py", ("    return", "    # why not\n    return"), False),
        ],
    )
    def test_trains_anew_when_its_code_changes(self, here, file, change, trains_anew):
        before = training_code("my_estimators:midrange")
        changed(file, *change)
        assert (training_code("my_estimators:midrange") != before) == trains_anew
        assert training_code("median") == training_code("mean")

    def test_in_a_package_is_found(self, here):
        Path("lab").mkdir()
        Path("my_estimators.py").rename("lab/own.py")
        Path("helpers_of_mine.py").rename("lab/helpers_of_mine.py")
        check_estimator("lab.own:midrange")
        before = training_code("lab.own:midrange")
        changed("lab/own.py", "/ 2", "/ 3")
        assert training_code("lab.own:midrange") != before

    @pytest.mark.parametrize(
        "line", ["from lab.parts.helpers_of_mine import extremes", "from lab.parts import helpers_of_mine"]
    )
    def test_in_a_package_depends_on_its_other_modules(self, here, line):
        Path("lab/parts").mkdir(parents=True)
        text = Path("my_estimators.py").read_text()
        Path("lab/parts/own.py").write_text(text.replace("from helpers_of_mine import extremes", line))
        Path("helpers_of_mine.py").rename("lab/parts/helpers_of_mine.py")
        check_estimator("lab.parts.own:midrange")
        before = training_code("lab.parts.own:midrange")
        changed("lab/parts/helpers_of_mine.py", "nan=9e9", "nan=8e8")
        assert training_code("lab.parts.own:midrange") != before


class TestRefused:
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("medain", "unknown estimator 'medain'; there are: mean-std, mean, "),
            ("my_estimaters:midrange", r"estimator 'my_estimaters:midrange': no module 'my_estimaters' in /"),
            ("my_estimators:midrang", r"estimator 'my_estimators:midrang': .*my_estimators\.py has no 'midrang'"),
            ("broken:midrange", r"estimator 'broken:midrange': .*broken\.py: .*never closed"),
            (":midrange", "no module ''"),
            ("my_estimators.deeper:midrange", r"no module 'my_estimators\.deeper'"),
        ],
    )
    def test_when_the_study_is_checked(self, here, name, message):
        Path("broken.py").write_text("midrange = (")
        with pytest.raises(ValueError, match=message):
            check_estimator(name)
        study = studies.changed(MINI, {"variants": {"fixed-rows": {"training": {"estimator": name}}}})
        with pytest.raises(StudyError, match=f"run toy-qwen3/grpo/G4/fixed-rows: .*{message}"):
            check(study, SCHEMA)
        assert expand(study)  # of the study alone
