import sys
from dataclasses import replace
from pathlib import Path

import pytest
import studies

from mcgrpo.estimators import ESTIMATORS, uses_mad_zero
from mcgrpo.study.check import StudyError, check
from mcgrpo.study.estimators import USED_BY, check_estimator, drawn, planned_extra
from mcgrpo.study.fingerprint import fingerprint
from mcgrpo.study.plan import expand

MINI = studies.load("mini")
OWN = '''
"""User-defined."""
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
    """A folder to run a study in, with a user-defined estimator."""
    monkeypatch.chdir(tmp_path)
    Path("my_estimators.py").write_text(OWN)
    Path("helpers_of_mine.py").write_text(HELPERS)
    yield tmp_path
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("my_estimators", "helpers_of_mine", "lab"):
            del sys.modules[name]


def changed(file, old, new):
    text = Path(file).read_text()
    assert old in text
    Path(file).write_text(text.replace(old, new))


def own_run(estimator="my_estimators:midrange", **training):
    run = next(entry.run for entry in expand(MINI).values() if entry.run.method == "grpo")
    return replace(run, estimator=estimator, training=run.training | training)


def test_it_knows_the_options_of_all_estimators():
    zero = [name for name, estimator in ESTIMATORS.items() if uses_mad_zero(estimator)]
    assert USED_BY["mad_zero"] == zero == ["median-mad"]


class TestOnesOwn:
    def test_draws_what_it_says_or_the_run_says_and_only_it_is_imported_for(self, here):
        own = own_run()
        assert planned_extra(own) is None and "my_estimators" not in sys.modules
        assert planned_extra(own_run(extra_rollouts=3)) == 3
        assert drawn(own) == own.num_generations + 2 and planned_extra(own_run("mean")) == 0

    def test_has_code_of_its_own_which_is_read_without_being_imported(self, here):
        assert fingerprint("mcgrpo.train", "my_estimators:midrange") != fingerprint("mcgrpo.train", "median")
        assert "my_estimators" not in sys.modules

    @pytest.mark.parametrize(
        ("file", "change", "trains_anew"),
        [
            ("my_estimators.py", ("/ 2", "/ 3"), True),
            ("my_estimators.py", ("extra_rollouts=2", "extra_rollouts=1"), True),
            ("helpers_of_mine.py", ("nan=9e9", "nan=8e8"), True),
            ("my_estimators.py", ("User-defined", "Another"), False),
            ("my_estimators.py", ("    return", "    # why not\n    return"), False),
        ],
    )
    def test_trains_anew_when_its_code_changes(self, here, file, change, trains_anew):
        before = fingerprint("mcgrpo.train", "my_estimators:midrange")
        changed(file, *change)
        assert (fingerprint("mcgrpo.train", "my_estimators:midrange") != before) == trains_anew
        assert fingerprint("mcgrpo.train", "median") == fingerprint("mcgrpo.train", "mean")

    @pytest.mark.parametrize(
        "line",
        [
            "from .helpers_of_mine import extremes",
            "from lab.parts.helpers_of_mine import extremes",
            "from lab.parts import helpers_of_mine\nextremes = helpers_of_mine.extremes",
        ],
    )
    def test_in_a_package_is_found_and_depends_on_its_other_modules(self, here, line):
        Path("lab/parts").mkdir(parents=True)
        text = Path("my_estimators.py").read_text()
        Path("lab/parts/own.py").write_text(text.replace("from helpers_of_mine import extremes", line))
        Path("helpers_of_mine.py").rename("lab/parts/helpers_of_mine.py")
        check_estimator(own_run("lab.parts.own:midrange"))
        before = fingerprint("mcgrpo.train", "lab.parts.own:midrange")
        changed("lab/parts/helpers_of_mine.py", "nan=9e9", "nan=8e8")
        assert fingerprint("mcgrpo.train", "lab.parts.own:midrange") != before


class TestRefused:
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("medain", "unknown estimator 'medain'; there are: mean-std, mean, "),
            ("broken:midrange", "cannot import 'broken': SyntaxError: .*never closed"),
            ("failing:midrange", "cannot import 'failing': ZeroDivisionError: division by zero"),
        ],
    )
    def test_when_the_study_is_checked(self, here, name, message):
        Path("broken.py").write_text("midrange = (")
        Path("failing.py").write_text("midrange = 1 / 0")
        study = studies.changed(MINI, {"variants": {"fixed-rows": {"training": {"estimator": name}}}})
        culprit = rf"run toy-qwen3/grpo/G4/fixed-rows: .*{message}"
        with pytest.raises(StudyError, match=culprit):
            check(study)
        assert expand(study)  # of the study alone

    @pytest.mark.parametrize(
        ("estimator", "training", "message"),
        [
            ("mean-std", {"mad_zero": "std"}, "does not use mad_zero='std'; used by: median-mad$"),
            ("median", {"advantage_epsilon": 0.1}, "does not use advantage_epsilon=0.1; used by: mean-std, median-mad"),
        ],
    )
    def test_options_that_an_estimator_does_not_use(self, estimator, training, message):
        with pytest.raises(ValueError, match=f"^training.{next(iter(training))}: estimator '{estimator}' {message}"):
            check_estimator(own_run(estimator, **training))

    def test_defaults_are_no_such_options(self):
        for estimator in ("mean-std", "mean", "median"):
            check_estimator(own_run(estimator, mad_zero="epsilon", extra_rollouts=2, max_advantage=None))
        check_estimator(own_run("mean", advantage_epsilon=0.0))
