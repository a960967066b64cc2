"""The times of optimizer steps, measured in turns: `python -m mcgrpo.train.step_times --cells JSON ...`

On a CPU, trainings share cores, caches and memory with whatever else runs, so their own times compare nothing. Here one
job, beside which the study runs nothing (see the rule), trains the runs of a setting for a few steps each. The seeds
are divided among its processes, which take them one by one. Methods that are compared follow one another, in a new
order for every seed, so what slows the machine down slows them alike. Processor time is measured, on one thread: time
in which another program has the core does not count. What another program does to caches and to the core's clock does
count, for seconds at a time: so all this is repeated, and the least time of each step is kept (as the documentation of
Python's `timeit` advises).
"""

import itertools
import json
import math
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from mcgrpo import command_line
from mcgrpo.files import as_record, write_jsonl
from mcgrpo.records import Run, StepTime
from mcgrpo.train.arguments import arguments_of
from mcgrpo.train.assemble import trainer_of

REPEATS = 2
"""Times that each step is timed. A run that is begun again does the same work: its seed is the same."""

SELECTION = ("select_checkpoint", "eval_steps")
"""Keys of `training` that evaluate between steps."""


def in_turns(runs: Iterable[Run]) -> Iterator[Run]:
    """The runs by seed, `REPEATS` times; methods at the same G follow one another, each time in another order."""
    runs = sorted(runs, key=lambda run: run.name)
    for repeat, seed in itertools.product(range(REPEATS), sorted({run.seed for run in runs})):
        draw = random.Random(f"{repeat} {seed}")
        compared: dict[tuple[int, str], list[Run]] = defaultdict(list)
        for run in runs:
            if run.seed == seed:
                compared[run.num_generations, run.variant].append(run)
        for methods in draw.sample([*compared.values()], len(compared)):
            yield from draw.sample(methods, len(methods))


class ProcessorTime(TrainerCallback):
    """Measures the processor time of each optimizer step, in seconds; TRL generates within a step."""

    def __init__(self) -> None:
        self.start, self.seconds = 0.0, []

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock."""
        self.start = time.process_time()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Record the step."""
        self.seconds.append(time.process_time() - self.start)


def timed(run: Run, model: Path, data: Path, steps: int) -> Iterator[StepTime]:
    """The times of a run's first steps.

    Args:
        run: the run to time.
        model: folder of the initial model.
        data: the data set, `resources/data/NAME.jsonl`.
        steps: periods that are timed. A period lasts from one generation that begins an optimizer step to the next.
    """
    accumulation = run.training.get("gradient_accumulation_steps", 1)
    every = run.training.get("steps_per_generation", accumulation) * run.training.get("num_iterations", 1)
    updates = math.lcm(every, accumulation) // accumulation
    training = {key: value for key, value in run.training.items() if key not in SELECTION}
    short = replace(run, training=training | {"max_steps": steps * updates})
    clock = ProcessorTime()
    with tempfile.TemporaryDirectory() as folder:
        trainer_of(short, arguments_of(short, Path(folder), gpus=0), model, data, None, [clock]).train()
    for step, seconds in enumerate(clock.seconds, 1):
        yield StepTime(run.name, step, seconds)


def of_seeds(runs: Sequence[Run], seeds: Iterable[int], model: Path, data: Path, steps: int) -> list[StepTime]:
    """The times of the runs with these seeds, in turns; the rest as in `timed`."""
    chosen = [run for run in runs if run.seed in {*seeds}]
    return least(each for run in in_turns(chosen) for each in timed(run, model, data, steps))


def least(times: Iterable[StepTime]) -> list[StepTime]:
    """The least time of each step of a run."""
    seconds: dict[tuple[str, int], float] = {}
    for timed_step in times:
        step = timed_step.run, timed_step.step
        seconds[step] = min(timed_step.seconds, seconds.get(step, math.inf))
    return [StepTime(*step, least_seconds) for step, least_seconds in seconds.items()]


def main() -> None:
    """Time the steps of a setting's runs in turns."""
    import torch

    parser = command_line.parser(main.__doc__)
    cells = "the runs to time, as JSON: for each cell a `run`, and its `seeds`"
    parser.add_argument("--cells", type=json.loads, required=True, help=cells)
    parser.add_argument("--steps", type=int, required=True, help="periods that are timed, see `timed`")
    parser.add_argument("--model", type=Path, required=True, help="folder of the model to start from")
    parser.add_argument("--data", type=Path, required=True, help="the data set, resources/data/NAME.jsonl")
    parser.add_argument("--processes", type=int, default=1, help="that divide the seeds among them")
    parser.add_argument("--output", type=Path, required=True, help="JSONL, one StepTime a line")
    options = parser.parse_args()
    torch.set_num_threads(1)  # as the trainings of a study on a CPU
    runs = [as_record(Run, cell["run"] | {"seed": seed}, "--cells") for cell in options.cells for seed in cell["seeds"]]
    list(timed(runs[0], options.model, options.data, options.steps))  # the first steps of a process take longer
    seeds = sorted({run.seed for run in runs})
    processes = min(options.processes, len(seeds))
    of = partial(of_seeds, runs, model=options.model, data=options.data, steps=options.steps)
    with ProcessPoolExecutor(processes, get_context("fork")) as pool:
        found = pool.map(of, [seeds[first::processes] for first in range(processes)])
        write_jsonl(options.output, itertools.chain.from_iterable(found))


if __name__ == "__main__":
    main()
