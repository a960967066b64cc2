import numpy as np
import pytest
import studies

from mcgrpo.analyse.crossed import Weighted, contrast
from mcgrpo.analyse.stats import gain_verdict
from mcgrpo.commands.plan.effects import (
    BETWEEN_PROBLEMS,
    BETWEEN_SEEDS,
    DISAGREEMENT,
    Effect,
    effects,
    listing,
    smallest_gain,
)

PAPER = studies.load("config")


def test_one_seed_shows_nothing():
    """Its interval is over problems alone; the variance between seeds is unknown, whatever is assumed of it."""
    assert smallest_gain(1, 500) is smallest_gain(1, 1) is None
    assert "unknown: one seed" in "\n".join(listing([Effect("s", "b", 1, 1, 500, None)]))


@pytest.mark.parametrize(("seeds", "problems"), [(5, 200), (5, 30), (3, 500)])
def test_a_gain_of_that_size_is_seen_in_four_of_five_studies(seeds, problems):
    """Studies of real variance, through the code that judges them."""
    generator, number = np.random.default_rng(1), 400
    gain = smallest_gain(seeds, problems)
    seen = 0
    for _ in range(number):
        values = gain + BETWEEN_SEEDS * generator.normal(size=(seeds, 1))
        values = values + BETWEEN_PROBLEMS * generator.normal(size=problems)
        values = values + DISAGREEMENT**0.5 * generator.normal(size=(seeds, problems))
        seen += gain_verdict(contrast([{"sums": Weighted(values, -1.0, 1.0)}]), 0.01) == "better"
    assert 0.72 < seen / number < 0.9


def test_every_gain_of_the_papers_study_has_one_before_anything_is_trained():
    found = {(each.setting, each.benchmark): each for each in effects(PAPER)}
    gsm8k, aime = found["qwen3-1.7b-gsm8k", "gsm8k"], found["qwen3-4b-math", "aime24"]
    assert (gsm8k.problems, gsm8k.seeds, aime.problems, aime.seeds) == (1319, 5, 30, 5)
    assert found["llama-3.2-3b-gsm8k", "gsm8k"].cells == 3 * 3
    assert aime.cells == 2
    assert "3.0" in "\n".join(listing(list(found.values())))
