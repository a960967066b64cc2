"""`mcgrpo advise SAMPLES`: which estimator and G leave the most signal for one's own model. See docs/advise.md."""

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from matplotlib import pyplot as plt
from tabulate import tabulate
from torch import Tensor

from mcgrpo import command_line
from mcgrpo.commands.advise.mixture import mixtures, part
from mcgrpo.commands.advise.picture import curves_of, draw
from mcgrpo.commands.advise.ranking import Candidate, Costs, Row, candidates, rank
from mcgrpo.commands.advise.samples import Samples, read_samples
from mcgrpo.estimators import MAD_ZERO, check_options
from mcgrpo.files import RecordError, write_csv

SIZES = (2, 4, 8, 16)
RHOS = (0.1, 1.0, 10.0, 100.0)
RHO = 10.0
"""Many completions share a reward, so scores vary mostly within a level; from here on the ranking hardly changes."""
RESAMPLES = 200


def main(arguments: Sequence[str] | None = None) -> None:
    """Rank estimators and G by the signal that they leave of the policy gradient, at a model's own success rates."""
    options = _parser().parse_args(arguments)
    with command_line.errors(RecordError, ValueError):
        _advise(options)


def _advise(options: argparse.Namespace) -> None:
    costs, unit = _costs(options)
    check_options(mad_zero=options.mad_zero, max_advantage=options.max_advantage)
    if options.picture.suffix != ".png":
        raise ValueError(f"--picture {options.picture} should end in .png")
    if options.rewards and not options.rewards[0] < options.rewards[1]:
        raise ValueError(f"--rewards: a success should have more than a failure, not {options.rewards}")
    samples = read_samples(options.samples_file, options.rewards, options.samples)
    points, shares = mixtures(samples, RESAMPLES, options.seed)
    settings = {"rho": options.rho, "mad_zero": options.mad_zero, "max_advantage": options.max_advantage}
    sizes = sorted(set(options.num_generations))
    choices, left_out = candidates(options.estimators, sizes, samples.levels, points, costs, **settings)
    if not choices:
        raise ValueError(f"no estimator can be ranked: {left_out[0]}")
    rates, prompts = points[:, 1:].sum(dim=1), len(samples.counts)  # 1 - (1 - 0.3) would be above 0.3
    parts = [part(shares[0], chosen, prompts) for chosen in (rates <= options.hard, rates >= options.easy)]
    rows = rank(choices, shares, parts)
    if not rows[0].value > 0:
        raise ValueError(f"{options.samples_file}: no estimator has a signal at these success rates")
    print(*_heading(options.samples_file, samples, points, shares), "", sep="\n")
    print(_table(rows[: options.top], unit), "", sep="\n")
    print(*_notes(options, rows, left_out, unit), *_by_rho(choices, shares[:1]), sep="\n")
    if options.csv:
        write_csv(options.csv, Row, rows)
    successes = (shares[0] @ points).index_fill(0, torch.tensor([0]), 0.0)
    curves = curves_of(rows, choices, successes / successes.sum(), costs, **settings)
    plt.switch_backend("agg")
    draw(options.picture, rows, curves, unit, _histogram(points, shares[0]))
    print(f"Picture: {options.picture}")


def _costs(options: argparse.Namespace) -> tuple[Costs, str]:
    given = options.rollout_seconds, options.row_seconds
    if given == (None, None):
        return Costs(all_rows=options.all_rows), "rollout"
    if None in given:
        raise ValueError("give both --rollout-seconds and --row-seconds, or neither: signal is then per rollout")
    if not any(given):
        raise ValueError("--rollout-seconds and --row-seconds are both 0")
    return Costs(*given, all_rows=options.all_rows), "second"


def _heading(path: Path, samples: Samples, points: Tensor, shares: Tensor) -> Iterator[str]:
    rates = (shares @ (1 - points[:, 0])).tolist()
    low, high = torch.tensor(rates[1:]).quantile(torch.tensor([0.025, 0.975])).tolist()
    sizes = samples.counts.sum(dim=1)
    drawn = "exact rates" if samples.exact else f"{sizes.min():g} to {sizes.max():g} samples each"
    if not samples.exact and sizes.min() == sizes.max():
        drawn = f"{sizes[0]:g} samples each"
    yield f"{path}: {len(sizes)} prompts, {drawn}; rewards {', '.join(f'{level:g}' for level in samples.levels)}"
    yield f"success rate {rates[0]:.1%} [{low:.1%}, {high:.1%}]"
    if samples.note:
        yield samples.note


def _table(rows: Sequence[Row], unit: str) -> str:
    headers = ["estimator", "G", "drawn", f"signal/{unit}", "of the first", "first in", "hard", "easy"]
    return tabulate(
        [_cells(row) for row in rows],
        [*headers, "weight hard", "weight easy"],
        "simple",
        disable_numparse=True,
        colalign=("left", *["right"] * (len(headers) + 1)),
    )


def _cells(row: Row) -> list[str]:
    relative = f"{row.of_first:.2f} [{row.of_first_low:.2f}, {row.of_first_high:.2f}]"
    parts = [
        f"{each:.2f}" if each is not None else "" for each in (row.hard, row.easy, row.weight_hard, row.weight_easy)
    ]
    counts = [str(row.num_generations), str(row.drawn)]
    return [row.estimator, *counts, f"{row.value:.2e}", relative, f"{row.first:.0%}", *parts]


def _notes(options: argparse.Namespace, rows: Sequence[Row], left_out: Sequence[str], unit: str) -> Iterator[str]:
    if len(rows) > options.top:
        yield f"{len(rows) - options.top} more rows: --top {len(rows)}, or --csv FILE."
    yield f"signal: squared signal to noise per {unit}. With twice as much, the same progress takes half the {unit}s."
    yield "of the first: with the 95% interval over prompts. first in: share of bootstrap samples with no better row."
    limits = f"up to {options.hard:g}, and from {options.easy:g}"
    yield f"hard, easy: share of the best signal on prompts with success rates {limits}."
    yield "weight: how much such prompts count in the objective that is climbed, over the average of all prompts."
    if left_out:
        names = ", ".join(line.partition(":")[0] for line in left_out)
        yield f"Not ranked: {names} (--estimators NAME says why)."
    yield "Not included: clipping, reuse of rollouts, Adam, KL terms, and a policy that moves."


def _by_rho(candidates: Sequence[Candidate], shares: Tensor) -> Iterator[str]:
    """Which candidate is first for other variances of a score within its level."""
    firsts = []
    for rho in RHOS:
        changed = [dataclasses.replace(each, signal=dataclasses.replace(each.signal, rho=rho)) for each in candidates]
        best = max(changed, key=lambda each: each.efficiency(shares).item())
        firsts.append(f"{best.name} at G = {best.signal.num_generations} (rho {rho:g})")
    yield "First, by how much scores vary within a reward level: " + ", ".join(firsts) + "."


def _histogram(points: Tensor, shares: Tensor) -> Tensor:
    """The share of prompts in each tenth of success rates."""
    tenths = (points[:, 1:].sum(dim=1) * 10).long().clamp(max=9)
    return torch.zeros(10, dtype=shares.dtype).scatter_add(0, tenths, shares)


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(main.__doc__)
    positive, share = partial(command_line.number, least=0.0), partial(command_line.number, least=0.0, most=1.0)
    parser.add_argument(
        "samples_file",
        type=Path,
        metavar="SAMPLES",
        help="grades (mcgrpo grade), or a CSV file with a column pass_rate",
    )
    parser.add_argument(
        "--samples", type=partial(command_line.whole, least=2), metavar="K", help="samples behind each pass rate"
    )
    parser.add_argument(
        "--rewards", type=float, nargs=2, metavar=("FAILURE", "SUCCESS"), help="rewards (default: those of the file)"
    )
    parser.add_argument("--estimators", nargs="+", metavar="NAME", help="default: all that have a signal of their own")
    sizes = partial(command_line.whole, least=2)
    parser.add_argument(
        "--num-generations", type=sizes, nargs="+", default=SIZES, metavar="G", help="default: 2 4 8 16"
    )
    parser.add_argument(
        "--rollout-seconds", type=positive, metavar="S", help="cost of one rollout: rank by signal per second"
    )
    parser.add_argument("--row-seconds", type=positive, metavar="S", help="of one row in an update")
    parser.add_argument("--all-rows", action="store_true", help="rows without an advantage cost as much as the others")
    parser.add_argument("--mad-zero", choices=MAD_ZERO, default="epsilon", help="see docs/mad-zero.md (%(default)s)")
    parser.add_argument("--max-advantage", type=positive, metavar="A", help="bound on advantages (none)")
    parser.add_argument("--rho", type=positive, default=RHO, help="how much scores vary within a level (%(default)g)")
    parser.add_argument("--hard", type=share, default=0.25, help="largest success rate of a hard prompt (%(default)g)")
    parser.add_argument(
        "--easy", type=share, default=0.75, help="smallest success rate of an easy prompt (%(default)g)"
    )
    parser.add_argument(
        "--top", type=partial(command_line.whole, least=1), default=20, help="rows to print (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=partial(command_line.whole, least=0), default=0, help="of the bootstrap (%(default)s)"
    )
    parser.add_argument("--picture", type=Path, default=Path("advice.png"), help="default: %(default)s")
    parser.add_argument("--csv", type=Path, help="write all rows")
    return parser


if __name__ == "__main__":
    main()
