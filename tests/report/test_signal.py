"""The figure of computed signal, and the sentence of the first screen on what it predicts."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from synthetic import SIGNAL_RATES, cell_signals, drawn, signal_points

from mcgrpo.report.figures import signal
from mcgrpo.report.page.prediction import sentence

TRAINED = "toy_a/grpo/G8/default/seed0"


def panels(figure):
    return [[(line.get_label(), line.get_xdata(), line.get_ydata()) for line in axes.lines] for axes in figure.axes]


def test_signal_stands_above_the_objective_a_column_for_each_g(signal_frame):
    found = drawn(signal, signal_frame(signal_points()), panels)
    assert len(found) == 4
    rates = np.array(SIGNAL_RATES)
    for own, expected in zip(found, [rates * (1 - rates)] * 2 + [rates / 0.75] * 2, strict=True):
        assert [name for name, *_ in own] == ["GRPO, DAPO", "MC-GRPO"]  # one estimator, one line
        np.testing.assert_allclose(own[0][1], 100 * rates)
        np.testing.assert_allclose(own[0][2], expected)


def test_of_several_models_the_untrained_one_is_shown(signal_frame):
    points = [*signal_points(("grpo",), (8,), TRAINED), *signal_points(("grpo",), (2,))]
    titles = drawn(signal, signal_frame(points), lambda figure: [axes.get_title() for axes in figure.axes])
    assert titles == ["G = 2", ""]


def rows(*signals):
    return pd.DataFrame([dataclasses.asdict(each) for each in signals])


def test_the_sentence_has_the_correlation_its_interval_and_the_signs():
    text = sentence(rows(*cell_signals(), *cell_signals(TRAINED)))
    assert "a rank correlation of 1.00 with the measured gains" in text
    assert "4 cells" in text and "of 3 gains that can be told from 0, 3 have its sign." in text


@pytest.mark.parametrize("signals", [[], cell_signals()[:3]])
def test_without_enough_cells_there_is_no_sentence(signals):
    assert sentence(rows(*signals)) == ""
