import numpy as np
import pytest
import studies

from mcgrpo.analyse.crossed import Weighted, contrast
from mcgrpo.commands.plan.effects import (
    BETWEEN_PROBLEMS,
    BETWEEN_SEEDS,
    DISAGREEMENT,
    SAMPLED,
    listing,
    smallest_gain,
)

PAPER, MINI = studies.load("config"), studies.load("mini")


def test_one_seed_shows_nothing():
    """Its interval is over problems alone; the variance between seeds is unknown, whatever is assumed of it."""
    assert smallest_gain(1, 500) is smallest_gain(1, 1) is None
    assert "unknown: one seed" in "\n".join(listing(studies.changed(MINI, {"seeds": [0]})))


@pytest.mark.parametrize(("seeds", "problems", "samples"), [(5, 200, 0), (5, 30, 4), (3, 500, 0)])
def test_a_gain_of_that_size_is_seen_in_four_of_five_studies(seeds, problems, samples):
    """Studies of real variance, through the code that judges them."""
    generator, number = np.random.default_rng(1), 400
    gain, residual = smallest_gain(seeds, problems, samples), SAMPLED / samples if samples else DISAGREEMENT
    seen = 0
    for _ in range(number):
        values = gain + BETWEEN_SEEDS * generator.normal(size=(seeds, 1))
        values = values + BETWEEN_PROBLEMS * generator.normal(size=problems)
        values = values + residual**0.5 * generator.normal(size=(seeds, problems))
        seen += contrast([{"sums": Weighted(values, -1.0, 1.0)}]).limits()[0] > 0
    assert 0.72 < seen / number < 0.9


@pytest.mark.parametrize(("decoding", "told"), [("sampled", "sampled accuracy (avg@4;"), ("greedy", "greedy accuracy")])
def test_gains_are_in_accuracy_of_the_primary_decoding(decoding, told):
    config = studies.changed(PAPER, {"primary": {"decoding": decoding}})
    title, table, *_ = listing(config)
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in table.splitlines()}
    assert told in title
    cells, seeds, problems, gain = rows["llama-3.2-3b-gsm8k", "gsm8k"]
    assert (cells, seeds, problems) == ("9", "5", "1319")
    assert gain == f"{100 * smallest_gain(5, 1319, 4 * (decoding == 'sampled')):.1f}"
    assert rows["qwen3-4b-math", "aime24"][0] == "2"
