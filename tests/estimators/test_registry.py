"""Names of estimators: those there are, those that somebody adds, and those that cannot be."""

import sys
from pathlib import Path

import pytest
import torch

from mcgrpo.estimators import ESTIMATORS, Estimator, estimate, get_estimator

OWN = """
from mcgrpo.estimators import Estimator

def centre(rewards):
    return (rewards.amin(1, keepdim=True) + rewards.amax(1, keepdim=True)) / 2

midrange = Estimator(centre, extra_rollouts=1)
"""


def midrange(rewards):
    return (rewards.amin(1, keepdim=True) + rewards.amax(1, keepdim=True)) / 2


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_says_where_it_is_from(name):
    assert "arXiv" in ESTIMATORS[name].source or "MC-GRPO" in ESTIMATORS[name].source


class TestRegister:
    def test_five_lines_make_an_estimator(self, register):
        register("midrange", Estimator(midrange, extra_rollouts=1))
        advantages, keep, found = estimate(torch.tensor([[0.0, 3.0, 4.0]]), "midrange", 2)
        assert advantages.tolist() == [[-2.0, 1.0, 2.0]] and keep.tolist() == [[True, False, True]]
        assert found["drawn/centre"] == 2

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("median", r"the name 'median' is taken by another estimator \(MC-GRPO, Eq\. 2"),
            ("", "'' cannot name an estimator"),
            ("mine:midrange", "'mine:midrange' cannot name an estimator: a name is not empty and has no colon"),
        ],
    )
    def test_a_name_that_cannot_be_is_refused(self, register, name, message):
        with pytest.raises(ValueError, match=message):
            register(name, Estimator(midrange))

    def test_what_is_no_estimator_is_refused(self, register):
        with pytest.raises(
            TypeError, match=r"estimator 'midrange' should be an mcgrpo\.estimators\.Estimator, not <func"
        ):
            register("midrange", midrange)


class TestByModuleAndAttribute:
    @pytest.fixture
    def here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("own_of_a_test.py").write_text(OWN)
        yield tmp_path
        sys.modules.pop("own_of_a_test", None)

    def test_is_imported_from_the_current_folder(self, here):
        path = list(sys.path)
        advantages, keep, _ = estimate(torch.tensor([[0.0, 3.0, 4.0]]), "own_of_a_test:midrange", 2)
        assert sys.path == path
        assert advantages.tolist() == [[-2.0, 1.0, 2.0]] and keep.tolist() == [[True, False, True]]

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            (None, r"is given by its name, not None: register\(name, estimator\)"),
            ("medain", "unknown estimator 'medain'; there are: mean-std, .*, and module:attribute"),
            ("nowhere_at_all:x", "estimator 'nowhere_at_all:x': cannot import 'nowhere_at_all': No module named"),
            (":x", "estimator ':x': cannot import ''"),
            (
                "own_of_a_test:x",
                "estimator 'own_of_a_test:x': 'x' of own_of_a_test should be an Estimator, but there is none",
            ),
            ("own_of_a_test:centre", "'centre' of own_of_a_test should be an Estimator, but it is <function"),
        ],
    )
    def test_what_is_missing_is_named(self, here, name, message):
        with pytest.raises(ValueError, match=message):
            get_estimator(name)
