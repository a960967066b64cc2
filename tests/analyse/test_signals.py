"""The exact signal of a study's cells at its own rewards, and how well it predicts what was gained."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from cells import cell, write_cells

from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import CellSignal, SignalPoint
from mcgrpo.analyse.signal_agreement import agreement
from mcgrpo.analyse.signals import main
from mcgrpo.estimators import signal
from mcgrpo.records import Plan, Primary, Run, SignFlips
from mcgrpo.study.methods import METHODS, UNTRAINED
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import write_plan

SHARES = [(0.5, 0.25, 0.25), (0.75, 0.0, 0.25), (1.0, 0.0, 0.0)]
"""Of wrong, equivalent and correct among 16 rollouts of each prompt."""
SOURCE = f"toy_a/{UNTRAINED}/G0/default/seed0"


def run(method, budget, variant="default", rewards=("accuracy",), **training):
    spec = METHODS.get(method)
    estimator, loss = (training.pop("estimator", spec.estimator), spec.loss_type) if spec else ("", "")
    return Run("s", "toy_a", method, budget, variant, 0, "toy", "sums", "plain", "gsm8k", loss, estimator,
               dict.fromkeys(rewards, 1.0), training)  # fmt: skip


RUNS = [
    run(UNTRAINED, 0, rewards=()),
    run("grpo", 2),
    run("mc-grpo", 2),
    run("grpo", 4),
    run("mc-grpo", 4),
    run("mc-grpo", 2, "mad-zero-std", mad_zero="std"),
    run("grpo", 2, "rivals", estimator="batch-std"),
    run("grpo", 2, "flip-0.2", advantage_flip_rate=0.2),
    run("mc-grpo", 2, "mixed", group_by="position"),
    run("mc-grpo", 2, "composite", rewards=("accuracy", "format")),
    dataclasses.replace(run("mc-grpo", 2, "halved"), rewards={"accuracy": 0.5}),
]


@pytest.fixture
def study(tmp_path):
    """The files that the stage reads; returns its arguments."""
    evaluations = {run.name: {"sums": "in"} for run in RUNS}
    flips = {SOURCE: SignFlips("sums", 3, 16, [2, 4], 1.0)}
    places = RUNS, {"toy_a": {"sums": "in"}}, evaluations, flips
    write_plan(tmp_path / "plan.json", Plan("toy", *places, ["paper"], 0.01, ["avg@4"], Primary("avg@4", [])))
    rows = []
    for prompt, shares in enumerate(SHARES):
        counts = (int(16 * share) for share in shares)
        verdicts = np.repeat(["wrong", "equivalent", "correct"], [*counts]).tolist()
        rows += [{"id": f"q{prompt}", "sample": n, "verdict": v, "extracted": "1"} for n, v in enumerate(verdicts)]
    grades = tmp_path / f"rollout-grades/{SOURCE}/sums.jsonl"
    grades.parent.mkdir(parents=True)
    grades.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sampled = {"measure": "avg@4", "benchmark": "sums"}
    cells = [
        cell(UNTRAINED, 0, 0.3, **sampled),
        cell("grpo", 2, 0.5, **sampled),
        cell("mc-grpo", 2, 0.47, gain=(-0.03, -0.04, -0.02), **sampled),
        cell("mc-grpo", 2, 0.5, variant="mad-zero-std", change=(0.03, 0.01, 0.05), baseline=None, **sampled),
    ]
    write_cells(ResultFiles(tmp_path), cells)
    return ["--results", str(tmp_path)]


@pytest.fixture
def signals(study, tmp_path):
    main(study)
    return read_frame(tmp_path / "signals.csv", CellSignal)


def row_of(signals, method, budget, variant="default"):
    (row,) = signals[
        (signals.method == method) & (signals.num_generations == budget) & (signals.variant == variant)
    ].itertuples()
    return row


def test_a_cell_has_the_signal_of_its_estimator_at_the_rewards_of_the_rollouts(signals):
    for method, budget, variant, options in (
        ("grpo", 4, "default", {}),
        ("mc-grpo", 2, "default", {}),
        ("mc-grpo", 2, "mad-zero-std", {"mad_zero": "std"}),
    ):
        row = row_of(signals, method, budget, variant)
        expected = signal(METHODS[method].estimator, budget, [0.0, 1.5, 2.0], SHARES, **options)
        names = ("per_step", "per_rollout", "per_row", "of_best", "drawn")
        assert [getattr(row, name) for name in names] == pytest.approx([getattr(expected, name) for name in names])
        assert (row.source, row.prompts, row.success) == (SOURCE, 3, pytest.approx(0.25))


def test_a_predicted_gain_is_over_the_cell_that_the_measured_one_is_over(signals):
    median, mean = row_of(signals, "mc-grpo", 2), row_of(signals, "grpo", 2)
    assert (median.kind, median.baseline) == ("difference", "grpo")
    assert median.predicted == pytest.approx(median.per_step / mean.per_step - 1)
    assert (median.measure, median.gain, median.gain_low, median.gain_high) == ("avg@4", -0.03, -0.04, -0.02)
    other = row_of(signals, "mc-grpo", 2, "mad-zero-std")
    assert other.kind == "change" and other.baseline == "default" and other.gain == 0.03
    assert other.predicted == pytest.approx(other.per_step / median.per_step - 1)
    assert row_of(signals, "grpo", 2).predicted != row_of(signals, "grpo", 2).predicted  # NaN: it has no baseline


def test_cells_that_a_signal_does_not_describe_have_no_row(signals):
    """Estimators that compare prompts, flipped signs, groups of several prompts, other rewards."""
    assert set(signals.variant) == {"default", "mad-zero-std"} and len(signals) == 5


def test_curves_are_of_prompts_with_each_success_rate(signals, tmp_path):
    curves = read_frame(tmp_path / "signal_curves.csv", SignalPoint)
    assert set(zip(curves.method, curves.num_generations, strict=True)) == {
        (method, budget) for method in ("grpo", "mc-grpo") for budget in (2, 4)
    }
    one = curves[(curves.method == "mc-grpo") & (curves.num_generations == 2)]
    assert len(one) == 50 and one.rate.is_monotonic_increasing and one.objective.is_monotonic_increasing
    point = one.iloc[10]
    chances = [[1 - point.rate, point.rate / 3, 2 * point.rate / 3]]
    expected = signal("median-mad", 2, [0.0, 1.5, 2.0], chances)
    assert point.per_rollout == pytest.approx(expected.per_rollout)
    assert point.objective == pytest.approx(expected.objective.item())


def test_a_model_that_always_fails_has_rows_without_signal(study, tmp_path):
    grades = tmp_path / f"rollout-grades/{SOURCE}/sums.jsonl"
    grades.write_text(grades.read_text().replace("correct", "wrong").replace("equivalent", "wrong"))
    main(study)
    signals = read_frame(tmp_path / "signals.csv", CellSignal)
    assert len(signals) == 5 and (signals.per_step == 0).all() and signals.predicted.isna().all()
    assert len(read_frame(tmp_path / "signal_curves.csv", SignalPoint)) == 4 * 50
    grades.write_text("{}\n")
    with pytest.raises(SystemExit, match=r"error: .*sums.jsonl:1"):
        main(study)
    grades.unlink()  # of an unfinished study
    main(study)
    assert read_frame(tmp_path / "signals.csv", CellSignal).empty


def frame(*pairs):
    """Cells with (predicted, measured) gains."""
    return pd.DataFrame(pairs, columns=["predicted", "gain"]).assign(setting="toy")


def test_agreement_is_a_rank_correlation_with_its_interval():
    found = agreement(frame((-0.4, -0.03), (-0.3, -0.015), (-0.1, 0.005), (0.1, 0.002), (0.3, 0.04)))
    assert (found.predictions, found.correlation) == (5, pytest.approx(0.9))
    assert found.low < 0 < found.high < 1  # five predictions say little: 1.472 -+ 1.96 * sqrt(1.405 / 2)
    turned = agreement(frame((0.4, -0.03), (0.3, -0.015), (0.1, 0.005), (-0.1, 0.002), (-0.3, 0.04)))
    assert turned.correlation == pytest.approx(-0.9)


def test_one_prediction_of_several_cells_counts_once():
    """As at several learning rates: else the same four predictions would give a narrow interval."""
    pairs = (-0.4, -0.03), (-0.3, -0.015), (0.1, 0.02), (0.3, 0.04), (0.2, 0.01)
    spread = [(predicted, gain + change) for predicted, gain in pairs for change in (-0.03, 0.0, 0.03)]
    assert agreement(frame(*spread)) == agreement(frame(*pairs))


@pytest.mark.parametrize("pairs", [[(0.1, 0.02), (0.2, 0.03), (0.3, 0.01)], [(0.1, 0.02)] * 5])
def test_agreement_of_few_or_equal_predictions_is_not_known(pairs):
    found = agreement(frame(*pairs))
    assert found.predictions == len(set(pairs)) and found.correlation is None and found.low is None
