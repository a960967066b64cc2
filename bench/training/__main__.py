"""`python -m bench.training`: the time of a step with TRL's trainer, the release's method, and ours.

Model, prompts, rewards and recipe are those of the mini study, with the model trained until its rewards have converged.
All contenders take turns in one process. Writes training.csv (a row per case and contender) and training.{pdf,png}, and
checks three requirements on our trainer (exit code 1 if one fails).
"""

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import torch
from transformers.utils import logging

from bench.training.contenders import CONTENDERS
from bench.training.figure import as_markdown, draw
from bench.training.measure import Case, Task, Timing, measure
from bench.training.task import mini_task, scripted_reward
from bench.training.verdicts import verdicts

SIZES = (2, 4, 8)
LENGTHS = (32, 64, 128)


def cases(quick: bool) -> Iterator[tuple[Case, list[str]]]:
    """Each case with who takes part: every G; then the length of completions; then the paper's penalty and reuse."""
    everybody = list(CONTENDERS)
    for size in SIZES:
        yield Case(size), everybody
    if not quick:
        for length in LENGTHS:
            yield Case(4, completion_length=length), everybody
        for size in SIZES:
            yield Case(size, beta=0.04, num_iterations=2), everybody


def row(case: Case, timing: Timing) -> dict[str, object]:
    """A row of the CSV; seconds to a hundredth of a millisecond."""
    seconds = {"seconds": timing.seconds, **timing.phases}
    place = {"contender": timing.contender, "steps": timing.steps}
    return {**asdict(case), **place, **{name: round(value, 5) for name, value in seconds.items()}}


def run(task: Task, quick: bool, rounds: int, steps: int, csv: Path) -> pd.DataFrame:
    """Every case, said and written as it is measured."""
    found = []
    for case, names in cases(quick):
        here = task.with_reward(scripted_reward(task.right)) if case.completion_length else task
        timings = measure(here, case, names, rounds, steps)
        base = timings[0].seconds
        print(case, flush=True)
        for each in timings:
            label = CONTENDERS[each.contender].label
            print(f"  {label:42} {each.seconds:.3f} s, {each.seconds / base:.2f} of TRL", flush=True)
        found += [row(case, each) for each in timings]
        pd.DataFrame(found).to_csv(csv, index=False)
    return pd.DataFrame(found)


def main() -> None:
    """Measure, write, draw, judge."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, default=Path("reports/bench"))
    parser.add_argument("--work", type=Path, default=Path("resources/bench"), help="model and prompts, made once")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5, help="steps of each contender a round")
    parser.add_argument("--quick", action="store_true", help="G = 2, 4, 8 without a penalty only")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.disable_progress_bar()
    options.output.mkdir(parents=True, exist_ok=True)
    task = mini_task(options.work)
    table = run(task, options.quick, options.rounds, options.steps, options.output / "training.csv")
    (options.output / "training.md").write_text(as_markdown(table, options.threads))
    draw(table, options.output)
    judged = verdicts(table)
    print(*(f"{'holds' if holds else 'FAILS'}: {what}" for what, holds in judged), sep="\n")
    sys.exit(not all(holds for _, holds in judged))


if __name__ == "__main__":
    main()
