"""A small study on disk, as `mcgrpo.report.page` reads it: two methods at two G, runs, a figure."""

from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np
import synthetic
from answers import plan_of
from claim_rows import pair, scores_of
from matplotlib import image
from runs import RUN

from mcgrpo.analyse.answer import questions
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.analyse.records import Cell, CellSignal, Contrast, CurvePoint, Gain, SignalPoint
from mcgrpo.files import write_csv, write_json
from mcgrpo.report.page.__main__ import main

ROOT = Path(__file__).parents[2]
COMMIT = "c0ffee" + "0" * 34
OUTCOME = {
    "status": "finished",
    "started": 1795293682.5,
    "seconds": 61.0,
    "steps": 3,
    "commit": COMMIT,
    "device": "cpu",
    "gpus": 0,
    "rollouts": "transformers",
    "versions": {"torch": "2.13.0", "trl": "1.16.0"},
}


def run(method="mc-grpo", budget=2, seed=0, variant="default"):
    estimator = "median-mad" if method.startswith("mc-") else "mean-std"
    return replace(RUN, setting="toy_a", method=method, num_generations=budget, seed=seed, variant=variant,
                   estimator=estimator)  # fmt: skip


RUNS = [run(method, budget, seed) for method in ("grpo", "mc-grpo") for budget in (2, 4) for seed in (0, 1)]
RUNS.append(run("grpo", 4, variant="flip-exact-0.25"))
PLAN = {"study": "toy", "runs": [asdict(each) for each in RUNS], **plan_of(["toy_a"])}


def outcome_of(results, run, folder="runs", **changes):
    write_json(results / folder / run.name / "run.json", asdict(run) | {"outcome": OUTCOME | changes})


@cache
def evaluated():
    """The project's claims and the answer, over gains of which some are sure and some are not."""
    gains = [pair(gain, 0.03, budget=g, setting="toy_a") for g, gain in ((2, 0.05), (4, -0.04), (8, 0.0))]
    scores = scores_of(*gains, pair(0.04, 0.02, method="grpo-plus1", setting="toy_a"))
    claims = [*read_claims(ROOT / "config/claims.yaml"), *(question.claim for question in questions(PLAN))]
    return contrasts(claims, scores, {key.without_measure for key in scores})


class PageStudy:
    """The study's folders, and its page."""

    def __init__(self, folder: Path):
        self.results, self.reports = folder / "results/toy", folder / "reports/toy"
        cells = [synthetic.paired(row) for row in synthetic.accuracy_cells(synthetic.BOTH, (2, 4))]
        write_csv(self.results / "summary.csv", Cell, cells)
        write_csv(self.results / "contrasts.csv", Contrast, evaluated())
        write_csv(self.results / "gains.csv", Gain, synthetic.gains_of(cells))
        write_csv(self.results / "curves.csv", CurvePoint, synthetic.curves(("toy_a",), steps=3))
        write_csv(self.results / "signals.csv", CellSignal, synthetic.cell_signals())
        write_csv(self.results / "signal_curves.csv", SignalPoint, synthetic.signal_points())
        write_json(self.results / "plan.json", PLAN)
        for each in RUNS:
            outcome_of(self.results, each)

    def draw(self, name):
        """A picture of noise in a figure's place."""
        (self.reports / "figures").mkdir(parents=True)
        image.imsave(self.reports / f"figures/{name}.png", np.random.default_rng(0).random((30, 60, 3)))

    def made(self, *figures) -> Path:
        places = ["--results", str(self.results), "--reports", str(self.reports), "--title", "Toy study"]
        main([*places, "--figures", *figures])
        return self.reports / "report.html"
