"""The figure of computed signal, and the sentence of the first screen on what it predicts."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from synthetic import SIGNAL_RATES, SOURCE, cell_signals, drawn, signal_points

from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import CellSignal
from mcgrpo.files import write_csv
from mcgrpo.report.figures import signal
from mcgrpo.report.page import contents
from mcgrpo.report.page.prediction import sentence
from mcgrpo.report.tables import signal as table

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
    assert "from the rewards of untrained models, predicts which method gains: its rank correlation" in text
    assert "is 1.00 (approximate interval 1.00 to 1.00, 4 cells)" in text and "95%" not in text
    assert "4 cells" in text and "of 3 gains that can be told from 0, 3 have its sign." in text


def test_of_a_trained_model_alone_the_sentence_says_that_it_is_trained():
    assert "from the rewards of trained models, predicts" in sentence(rows(*cell_signals(TRAINED)))


def test_a_correlation_that_may_be_zero_predicts_nothing():
    gains = zip(cell_signals(), (0.01, -0.03, 0.02, -0.01), strict=True)
    signals = rows(*(dataclasses.replace(each, gain=gain) for each, gain in gains))
    assert "does not predict which method gains" in sentence(signals)
    assert "By the first of these, the computed signal does not predict" in table.agreements(signals)


def test_predictions_along_a_training_stand_beside_those_of_the_untrained_model():
    later = [
        dataclasses.replace(cell_signals()[0], source=f"toy_a/grpo/G8/default/steps {steps}", predicted=predicted)
        for steps, predicted in (("1-6", -0.4), ("21-26", -0.2), ("55-60", 0.1))
    ]
    found = table.display(rows(*cell_signals(), *later))
    assert len(found.lines) == len(cell_signals()) and "steps 1-6, steps 21-26, steps 55-60. Rank" in found.caption
    assert [line.entries[-2].text for line in found.lines][:2] == ["−40%, −20%, +10%", ""]


@pytest.mark.parametrize("signals", [[], cell_signals()[:3]])
def test_without_enough_cells_there_is_no_sentence(signals):
    assert sentence(rows(*signals)) == ""


def test_the_table_has_predicted_beside_measured_gains_of_each_model(tmp_path):
    signals = [*cell_signals(TRAINED), *cell_signals()]
    write_csv(tmp_path / "signals.csv", CellSignal, signals)
    table.main(["--signals", str(tmp_path / "signals.csv"), "--output", str(tmp_path), "--title", "Toys"])
    text = (tmp_path / "signal.md").read_text()
    first = next(line for line in text.splitlines() if line.startswith("| toy_a, untrained (30.0%)"))
    cells = [cell.strip(" *") for cell in first.strip("|").split("|")]
    assert cells[1:] == ["2", "MC-GRPO", "3", "100", "50", "GRPO", "−40%", "", "−3.0 [−4.0, −2.0]"]
    assert text.count("Toys. Computed signal") == 1 and "of 128 prompts. Rank correlation" in text
    assert "with an approximate interval, which takes cells as independent and errs in up to 8% of studies" in text
    assert "toy_a, GRPO G8 seed0 (30.0%)" in text
    assert "\\DefineTable{signal}" in (tmp_path / "signal.tex").read_text()


def test_a_gain_of_one_seed_is_not_called_worse():
    """Its interval, over problems only, excludes 0, and it has no verdict."""
    (known, *_), one = cell_signals(), dataclasses.replace(cell_signals()[0], gain_verdict=None)
    for row, tone in ((known, "below"), (one, "")):
        (line,) = table.display(rows(row)).lines
        assert line.entries[-1].tone == tone


def test_a_prediction_that_is_rounded_to_nothing_has_no_minus():
    (line,) = table.display(rows(dataclasses.replace(cell_signals()[0], predicted=-0.004))).lines
    assert line.entries[-3].text == "+0%"


def test_the_label_of_a_part_is_one_that_latex_takes(tmp_path):
    """A long table has a part for each model; a success rate with its percent sign is in the model's heading."""
    signals = [cell for source in (TRAINED, SOURCE) for cell in cell_signals(source)]
    parts = table.display(table.select(rows(*signals))).parts(rows=1)
    assert [part.name for part in parts] == ["signal-toy_a-GRPO-G8-seed0-30.0-", "signal-toy_a-untrained-30.0-"]


VARIANT = dataclasses.replace(cell_signals()[0], variant="mad-zero-std", predicted=None)


@pytest.mark.parametrize("signals", [[], [VARIANT]])
def test_a_study_without_rollouts_or_methods_says_that_it_has_no_signal(tmp_path, signals):
    write_csv(tmp_path / "signals.csv", CellSignal, signals)
    assert contents.signal_view(rows(*signals) if signals else read_frame(tmp_path / "signals.csv", CellSignal)) is None
    table.main(["--signals", str(tmp_path / "signals.csv"), "--output", str(tmp_path)])
    for name in ("signal.md", "signal.tex"):
        assert table.ABSENT in (tmp_path / name).read_text()
