"""Claims as claims.yaml has them, and the scores that they are judged by."""

import numpy as np
import yaml

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.analyse.scored import Found
from mcgrpo.report.claims.judge import judge

SEEDS = 5


def cell(method="grpo", budget=2, values=0.5, *, setting="toy", variant="default", benchmark="sums", role="in",
         measure="greedy", seeds=None):  # fmt: skip
    """One cell of the scores: `values` are one for each seed, or seeds x problems; or one number for all five seeds."""
    values = np.full(SEEDS, float(values)) if np.ndim(values) == 0 else np.asarray(values, dtype=float)
    key = CellKey(setting, variant, role, benchmark, measure, budget, method)
    return key, {
        seed: Found(float(row.mean()), row.size, row if row.ndim else None, benchmark if row.ndim else "")
        for seed, row in zip(seeds or range(len(values)), values, strict=True)
    }


def pair(gain, half=0.01, *, method="mc-grpo", budget=2, base=0.5, **other):
    """A method and its baseline, GRPO: the paired difference is `gain`, its 95% interval `half` to either side."""
    spread = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / np.sqrt(2.5)
    noise = half / 2.7764451 * np.sqrt(SEEDS) * spread
    baselines = {"mc-grpo": "grpo", "mc-dapo": "dapo", "mc-dr-grpo": "dr-grpo", "grpo-plus1": "grpo"}
    shared = base + np.array([0.02, -0.01, 0.0, 0.01, -0.02])
    return [cell(method, budget, shared + gain + noise, **other), cell(baselines[method], budget, shared, **other)]


def simulated(generator, truths, seeds=SEEDS, problems=40, late=0.0, parts=(1, 1, 1)):
    """Scores of cells with these true gains, whose differences have a standard error of a point.

    A cell lacks one of its seeds with the probability `late`; `parts` are the shares of seeds, problems and the rest.
    """
    sizes = (seeds, 1), (1, problems), (seeds, problems)
    shares = np.array(parts) / sum(parts)
    scales = 0.01 / np.sqrt(2) * np.sqrt(shares * [np.prod(size) for size in sizes])  # two cells
    scores = {}
    for key, gain in truths.items():
        noise = sum(generator.normal(scale=scale, size=size) for scale, size in zip(scales, sizes, strict=True))
        values = np.linspace(0.3, 0.7, problems) + gain + noise
        missing = generator.integers(seeds) if generator.random() < late else None
        found = {seed: Found(float(row.mean()), problems, row, key.benchmark) for seed, row in enumerate(values)}
        scores[key] = {seed: each for seed, each in found.items() if seed != missing}
    return scores


def claims_of(tmp_path, *rows):
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": list(rows)}))
    return read_claims(path)


def claim(*comparisons, **other):
    return {"id": "it", "says": "It holds.", "where": "P:1", "comparisons": list(comparisons)} | other


def gain(budget=2, method="mc-grpo", **other):
    return {"terms": [{"method": method, "num_generations": budget, "field": "difference"}]} | other


def scores_of(*cells):
    """Cells, and lists of cells."""
    return dict(each for part in cells for each in (part if isinstance(part, list) else [part]))


def ruled(tmp_path, row, *cells, planned=()):
    scores = scores_of(*cells)
    places = {key.without_measure for key in scores} | {key.without_measure for key, _ in planned}
    claims = claims_of(tmp_path, row)
    (ruling,) = judge(claims, contrasts(claims, scores, places), "ours")
    return ruling
