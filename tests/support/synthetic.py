"""Rows of summary.csv and curves.csv with every role that a figure shows, of known numbers."""

from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import cells
import numpy as np

from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import CellSignal, CurvePoint, Gain, SignalPoint
from mcgrpo.files import write_csv
from mcgrpo.report.catalogue import FIGURES, stages
from mcgrpo.report.figures import facets
from mcgrpo.study.estimators import EXTRA_ROLLOUTS
from mcgrpo.study.methods import METHODS

SIX = ("grpo", "mc-grpo", "dapo", "mc-dapo", "dr-grpo", "mc-dr-grpo")
BOTH = ("grpo", "mc-grpo")


def cell(method, budget, mean, *, seeds=5, change=None, **other):
    """As `cells.cell`, with five seeds planned; a mean of None is a missing cell."""
    shift = None if change is None else (change, change - 0.01, change + 0.015)
    return cells.cell(
        method, budget, mean, seeds=seeds if mean is not None else 0, change=shift, **{"planned": 5} | other
    )


def accuracy_cells(methods=SIX, budgets=(2, 4, 8), measures=("greedy", "avg@4"), **other):
    """Accuracies that rise with G, the median's above the mean's at G=2, sampled ones 10 points lower."""
    for measure in measures:
        lower = 0.1 * (measure != "greedy")
        for place, method in enumerate(methods):
            for budget in budgets:
                mean = 0.5 + 0.02 * budget + 0.01 * place - lower + (0.05 / budget if method.startswith("mc-") else 0)
                yield cell(method, budget, mean, measure=measure, **other)
        yield cell("none", 0, 0.4 - lower, measure=measure, half=0.03, seeds=1, **other)


def flip_cells(setting="toy_a", method="none", budget=0, sizes=(2, 4, 8)):
    """Sign-flip rates of every baseline, oracle, convention and way, falling with k."""
    names = {"setting": setting, "benchmark": "sums", "role": "flips"}
    for oracle in ("oracle-mean", "oracle-median"):
        for place, baseline in enumerate(("mean", "mean-plus1", "median", "median-plus1")):
            for convention in ("strict", "zeros"):
                for k in sizes:
                    rate = 0.3 / k + 0.03 * place + 0.15 * (convention == "zeros") + 0.02 * (oracle == "oracle-median")
                    for how, shift in (("exact", 0.0), ("sampled", 0.004)):
                        measure = f"{baseline}/{oracle}/{convention}/k{k}/{how}"
                        yield cell(method, budget, rate + shift, measure=measure, half=0.015, seeds=1, **names)


def injected_cells(budgets=(4, 8), **other):
    """GRPO with flips: at both budgets, falling with rho; exact ones at 0.25 of the largest."""
    for measure, lower in (("greedy", 0.0), ("avg@4", 0.1)):
        for budget in budgets:
            for rate in (0.05, 0.1, 0.2, 0.4):
                yield cell("grpo", budget, 0.6 - lower - rate / 2, variant=f"flip-{rate}", measure=measure, **other)
        yield cell("grpo", max(budgets), 0.42 - lower, variant="flip-exact-0.25", measure=measure, **other)


def variant_cells(variants=("released", "mixed-groups", "best-on-test"), **other):
    """Changes of 1, 2, ... points down, for both methods and decodings at two G."""
    for place, variant in enumerate(variants, 1):
        for measure in ("greedy", "avg@4"):
            for method in BOTH:
                for budget in (2, 4):
                    change = -0.01 * place
                    yield cell(method, budget, 0.5, variant=variant, measure=measure, change=change, **other)


def study(settings=("toy_a", "toy_b")):
    """All of it, with an out-of-distribution benchmark and a missing cell for each setting."""
    for setting in settings:
        own = {"setting": setting}
        rows = list(accuracy_cells(**own))
        yield from (missing(row) if (row.method, row.num_generations) == ("mc-dapo", 4) else row for row in rows)
        yield from accuracy_cells(BOTH, (2, 4), benchmark="far", role="out", **own)
        yield from accuracy_cells(BOTH, variant="composite", **own)
        yield from [*flip_cells(setting), *flip_cells(setting, "grpo", 8)]
        yield from [*injected_cells(**own), *variant_cells(**own)]


def paired(row, difference=0.02, low=-0.01, high=0.05, word="inconclusive", **fields):
    """The same cell with a paired difference to its baseline, if it has one and is there."""
    if not row.baseline or row.mean is None:
        return row
    numbers = {"difference": difference, "difference_low": low, "difference_high": high, "difference_verdict": word}
    told = {"difference_seeds": row.seeds, "difference_detectable": 0.034, "equivalence_margin": 0.01}
    return replace(row, **numbers | told | fields)


def gains_of(rows, spread=0.01):
    """A `Gain` for each seed of every paired difference: the mean, and as far above and below it."""
    for row in rows:
        for seed in range(row.difference_seeds or 0):
            key = {name: getattr(row, name) for name in ("setting", "method", "num_generations", "variant")}
            where = {name: getattr(row, name) for name in ("benchmark", "role", "measure", "baseline")}
            yield Gain(**key, seed=seed, **where, kind="difference", gain=row.difference + spread * (seed - 2))


def missing(row):
    """The same cell, planned and not there."""
    empty = dict.fromkeys(("n", "mean", "low", "high", "over"))
    return replace(row, seeds=0, **empty)


def point(method, budget, seed, step, seconds=(1.0, 0.1, 0.4, 2.5), setting="toy_a", reward=0.5, accuracy=0.25):
    """One step of a run, of 8 prompts; only its rollouts, their accuracy and reward, and its seconds are filled."""
    names = CurvePoint.__dataclass_fields__
    return CurvePoint(
        **dict.fromkeys(names)
        | {"setting": setting, "method": method, "num_generations": budget, "variant": "default"}
        | {"seed": seed, "step": step, "reward": reward, "accuracy": accuracy}
        | {"rollouts": 8 * (budget + EXTRA_ROLLOUTS[METHODS[method].estimator])}
        | dict(zip([name for name in names if name.startswith("seconds_")], seconds, strict=True))
    )


def curves(settings=("toy_a", "toy_b"), methods=SIX, budgets=(2, 4), seeds=3, steps=40):
    """Rewards that rise, seconds that grow with the rollouts drawn."""
    for setting in settings:
        for place, method in enumerate(methods):
            for budget in budgets:
                drawn = (budget + EXTRA_ROLLOUTS[METHODS[method].estimator]) / 4
                for seed in range(seeds):
                    for step in range(1, steps + 1):
                        reward = 0.3 + 0.02 * step + 0.05 * place + 0.05 * seed + 0.2 * (step * 7919 % 13) / 13
                        seconds = (0.9 * drawn, 0.04 * drawn, 0.3 * drawn, 0.6 * budget)
                        yield point(method, budget, seed, step, seconds, setting, reward)


def gains_frame(folder, rows):
    """The gains of these cells, through their file."""
    return cells.gains_frame(folder, gains_of(rows))


def curves_frame(folder, points):
    """The curves, through their file."""
    write_csv(folder / "curves.csv", CurvePoint, points)
    return read_frame(folder / "curves.csv", CurvePoint)


SOURCE = "toy_a/none/G0/default/seed0"
SIGNAL_RATES = (0.25, 0.5, 0.75)


def signal_points(methods=("grpo", "mc-grpo", "dapo"), budgets=(2, 4), source=SOURCE):
    """Curves whose signal is p (1 - p), and whose objective is p times G."""
    return [
        SignalPoint("toy_a", source, method, budget, rate, rate * (1 - rate), 1.0, rate * budget)
        for method in methods
        for budget in budgets
        for rate in SIGNAL_RATES
    ]


def cell_signals(source=SOURCE):
    """Four cells, of which the three that are told from 0 gained in the direction that was computed."""
    gains = ((2, -0.4, -0.03), (4, -0.3, -0.02), (8, -0.1, 0.001), (16, 0.2, 0.03))
    numbers = {"drawn": 3, "prompts": 128, "success": 0.3, "per_step": 1.0, "per_rollout": 0.1, "per_row": 0.1}
    return [
        CellSignal(
            "toy_a", source, "mc-grpo", budget, "default", **numbers, of_best=0.5, kind="difference", baseline="grpo",
            predicted=predicted, measure="avg@4", gain=gain, gain_low=gain - 0.01, gain_high=gain + 0.01,
            gain_verdict="better" if gain > 0.01 else "worse" if gain < -0.01 else "equivalent",
        )
        for budget, predicted, gain in gains
    ]  # fmt: skip


def signals_frame(folder, points):
    """The computed signal, through its file."""
    write_csv(folder / "signal_curves.csv", SignalPoint, points)
    return read_frame(folder / "signal_curves.csv", SignalPoint)


class Line(NamedTuple):
    """What an error bar container holds: the line of means, and both ends of each bar that is there."""

    points: Any
    bars: list


def drawn(name, *frames, look):
    """What `look` sees in the figure of this name, drawn from its sources, before it is closed."""
    figure = FIGURES[name]
    with facets.styled():
        drawing = getattr(import_module(stages(name)[1]), figure.draw)(*frames, **figure.options)
        drawing.draw_without_rendering()
        return look(drawing)


def lines(axes):
    """The lines of a panel that have bars, by label."""
    found = {}
    for container in axes.containers:
        points, _, (bars,) = container.lines
        found[container.get_label()] = Line(points, [bar for bar in bars.get_segments() if len(bar)])
    return found


def heights(line):
    """The means of a line, NaN at a gap."""
    return np.array(line.points.get_ydata(orig=False), dtype=float)
