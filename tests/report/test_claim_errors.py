"""How often claims are judged wrongly: studies are simulated, evaluated and judged by the project's own claims."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.scored import Found
from mcgrpo.report.claims.judge import judge

CONFIG = Path(__file__).parents[2] / "config"
CLAIMS = {claim.id: claim for claim in read_claims(CONFIG / "claims.yaml")}
PRINTED = as_cells(read_published(CONFIG / "published.csv"))
BENCHMARKS = {
    "qwen3-1.7b-gsm8k": "gsm8k",
    "llama-3.2-3b-gsm8k": "gsm8k",
    "qwen2.5-math-1.5b-math": "math500",
    "qwen2.5-7b-math": "math500",
    "qwen3-4b-math": "math500",
}
LOSSES = {"grpo": "mc-grpo", "dapo": "mc-dapo", "dr-grpo": "mc-dr-grpo"}
SEEDS, PROBLEMS = 5, 40
ERROR = 0.01
"""Standard error of a gain, a point: from its seeds and from its problems in equal parts."""


def printed_gains():
    """(setting, method, G) -> the gain in accuracy that the paper prints."""
    rows = PRINTED[(PRINTED.measure == "greedy") & (PRINTED.role == "in") & (PRINTED.variant == "default")]
    rows = rows[rows.difference.notna()]
    return {(row.setting, row.method, row.num_generations): row.difference for row in rows.itertuples()}


def study(generator, gains=None):
    """The scores of one study of the paper's five settings, with these true gains; without any they are all 0."""
    of_values = ERROR / np.sqrt(2 * 2) * np.sqrt([SEEDS, PROBLEMS])  # two cells, two parts
    scores = {}
    for setting, benchmark in BENCHMARKS.items():
        base = np.linspace(0.3, 0.7, PROBLEMS)
        for budget in (2, 4, 8):
            for pair in LOSSES.items():
                for method in pair:
                    gain = (gains or {}).get((setting, method, budget), 0.0)
                    by_seed, by_problem = (generator.normal(scale=scale, size=n) for scale, n in
                                           zip(of_values, (SEEDS, PROBLEMS), strict=True))  # fmt: skip
                    values = base + gain + by_seed[:, None] + by_problem
                    key = CellKey(setting, "default", "in", benchmark, "greedy", budget, method)
                    scores[key] = {
                        s: Found(float(row.mean()), PROBLEMS, row, benchmark) for s, row in enumerate(values)
                    }
    return scores


def rates(claim, gains=None, studies=200, seed=1):
    """How often each verdict is given on a claim, over simulated studies."""
    generator = np.random.default_rng(seed)
    found = Counter()
    for _ in range(studies):
        scores = study(generator, gains)
        rows = contrasts([CLAIMS[claim]], scores, {key.without_measure for key in scores})
        found[judge([CLAIMS[claim]], rows, "ours")[0].verdict] += 1
    return {verdict: count / studies for verdict, count in found.items()}


def test_the_simulated_gains_are_those_that_the_paper_prints():
    gains = printed_gains()
    assert {key[0] for key in gains} == set(BENCHMARKS)
    assert gains["qwen3-1.7b-gsm8k", "mc-grpo", 2] == pytest.approx(0.0464, abs=1e-3)
    assert sum(method in LOSSES.values() for _, method, _ in gains) == 5 * 3 * 3


def test_with_every_true_difference_zero_no_claim_is_often_judged_wrong():
    """Of 45 comparisons, each uncorrected, one would fail in two studies of three."""
    found = rates("never-worse")
    assert found.get("fails", 0) <= 0.05
    assert found.get("holds", 0) <= 0.05  # "at least 0" is shown by a gain


@pytest.mark.parametrize("claim", ["grpo-gains", "dapo-gains"])
def test_were_every_printed_gain_true_a_claim_would_hold(claim):
    assert rates(claim, printed_gains(), studies=100).get("holds", 0) >= 0.9


def test_one_large_loss_is_found_though_the_endpoint_holds():
    gains = printed_gains() | {("qwen3-4b-math", "mc-grpo", 2): -0.12}
    assert rates("grpo-gains", gains, studies=50).get("fails", 0) >= 0.9
