"""A small study on disk, as `mcgrpo.report.page` reads it: a summary of every role, runs, rollouts, figures."""

import json
from dataclasses import asdict, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import synthetic
from claim_rows import pair, scores_of
from matplotlib import image
from runs import RUN

from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.analyse.records import Cell, CellSignal, Contrast, CurvePoint, Gain, SignalPoint
from mcgrpo.files import write_csv, write_json, write_jsonl
from mcgrpo.records import Rollout
from mcgrpo.report.catalogue import FIGURES
from mcgrpo.report.page import write as html

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


def rollouts(drawn=3, steps=(1, 2, 3, 4, 5), prompts=2, completion="It is {answer}.\n#### {answer}", oracle=0.4):
    """Rows of rollouts.jsonl: the first of each prompt is wrong, the second the pivot, the last flipped."""
    for step in steps:
        for prompt in range(prompts):
            text = f"Question: What is {step} plus {prompt}?\nAnswer:"
            for sample in range(drawn):
                yield Rollout(
                    step=step,
                    prompt=text,
                    sample=sample,
                    completion=completion.format(answer=step + prompt if sample else 99),
                    reward=float(sample > 0),
                    advantage=[-1.5, 0.0, 2000.0][sample % 3],
                    kept=sample != 1,
                    pivot=sample == 1,
                    flipped=None if oracle is None else sample == drawn - 1,
                    length=7 + sample,
                    oracle=oracle,
                )


def outcome_of(results, run, folder="runs", **changes):
    write_json(results / folder / run.name / "run.json", asdict(run) | {"outcome": OUTCOME | changes})


def summary(settings=("toy_a",)):
    """The synthetic cells, each with a paired difference where its method has a baseline."""
    return map(synthetic.paired, synthetic.study(settings))


def few():
    """Those of two methods at two G, for tests that look at other things than tables: a page in half the time."""
    return (row for row in summary() if (row.role, row.variant) == ("in", "default") and row.num_generations < 8
            and row.method in ("none", "grpo", "mc-grpo"))  # fmt: skip


@cache
def evaluated():
    """The project's claims, over gains of which some are sure and some are not."""
    scores = scores_of(*(pair(gain, 0.03, budget=g, setting="toy_a") for g, gain in ((2, 0.05), (4, -0.04), (8, 0.0))))
    return contrasts(read_claims(ROOT / "config/claims.yaml"), scores, {key.without_measure for key in scores})


class PageStudy:
    """The study's folders, and its page."""

    def __init__(self, folder: Path, cells=summary):
        self.results, self.reports = folder / "results/toy", folder / "reports/toy"
        write_csv(self.results / "summary.csv", Cell, cells())
        write_csv(self.results / "contrasts.csv", Contrast, evaluated())
        write_csv(self.results / "gains.csv", Gain, synthetic.gains_of(cells()))
        write_csv(self.results / "curves.csv", CurvePoint, synthetic.curves(("toy_a",), steps=3))
        write_csv(self.results / "signals.csv", CellSignal, synthetic.cell_signals())
        write_csv(self.results / "signal_curves.csv", SignalPoint, synthetic.signal_points())
        write_json(self.results / "plan.json", {"study": "toy", "runs": [asdict(each) for each in RUNS]})
        for each in RUNS:
            outcome_of(self.results, each)
            drawn = each.num_generations + each.method.startswith("mc-")
            write_jsonl(
                self.results / "runs" / each.name / "rollouts.jsonl",
                rollouts(drawn, oracle=None if each.variant != "default" else 0.4),
            )
        for rule, seconds in (("train/a", 60), ("train/b", 30), ("tables", 5)):
            path = self.results / f"benchmarks/{rule}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:00\t-\n")

    def draw(self, names=FIGURES, side=300):
        """Pictures of noise, which no compression makes small, in the figures' places."""
        (self.reports / "figures").mkdir(parents=True)
        noise = np.random.default_rng(0).random((side, 2 * side, 3))
        for name in names:
            image.imsave(self.reports / f"figures/{name}.png", noise)

    def arguments(self, *figures):
        places = ["--results", str(self.results), "--reports", str(self.reports), "--title", "Toy study"]
        inputs = {"captions": "workflow/report", "claims": "config/claims.yaml", "published": "config/published.csv"}
        options = [part for name, path in inputs.items() for part in (f"--{name}", str(ROOT / path))]
        return [*places, *options, "--figures", *figures]

    def made(self, *figures) -> Path:
        html.main(self.arguments(*figures))
        return self.reports / "report.html"


def drawn_of(page: str) -> dict:
    """The completions that a page holds."""
    return json.loads(page.split('id="drawn">')[1].split("</script>")[0])


def is_rising(numbers) -> bool:
    return all(a <= b for a, b in pairwise(numbers))
