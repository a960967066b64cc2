"""Rank estimators and G by the signal they leave at your model's pass rates: `rank_estimators.py rates.csv`.

The file has a column `pass_rate`, one row a prompt. Rates estimated from few samples are more spread than the model's:
use 64 samples of each prompt, or more. Signal is that of one step, squared, over the rollouts drawn: twice as much
makes the same progress with half the rollouts. What it leaves out: `mcgrpo.estimators.signals`.
"""

import argparse

import pandas as pd
from tabulate import tabulate

from mcgrpo.estimators import ESTIMATORS, signal

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("rates", help="a CSV file with a column pass_rate")
parser.add_argument("--num-generations", type=int, nargs="+", default=[2, 4, 8], metavar="G")
parser.add_argument("--rewards", type=float, nargs=2, default=[0.0, 1.0], metavar=("FAILURE", "SUCCESS"))
options = parser.parse_args()

rates = pd.read_csv(options.rates).pass_rate
if not rates.between(0, 1).all():
    parser.error(f"{options.rates}: pass_rate should be between 0 and 1")
if rates.empty:
    parser.error(f"{options.rates}: no rows")
if options.rewards[0] >= options.rewards[1]:
    parser.error("--rewards: a success should have more than a failure")

probabilities = [[1 - rate, rate] for rate in rates]
rows, left_out = [], []
for name in ESTIMATORS:
    try:
        found = [signal(name, size, options.rewards, probabilities) for size in options.num_generations]
    except ValueError as error:
        left_out.append(str(error))
        continue
    rows += [(name, each.num_generations, each.drawn, each.per_rollout) for each in found]
rows.sort(key=lambda row: -row[-1])
best = rows[0][-1]
print(tabulate(
    [(*row, row[-1] / best if best else 0) for row in rows],
    ["estimator", "G", "drawn", "signal per rollout", "of the best"],
    floatfmt=("", "", "", ".2e", ".2f"),
))  # fmt: skip
print(f"{len(rates)} prompts, mean pass rate {rates.mean():.1%}")
print(*(f"left out: {reason}" for reason in left_out), sep="\n")
