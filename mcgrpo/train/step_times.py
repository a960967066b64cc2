"""The times of optimizer steps, measured in turns: `python -m mcgrpo.train.step_times --plan plan.json ...`

On a CPU, trainings share cores, caches and memory with whatever else runs, so their own times compare nothing. Here one
process has all cores (see the rule) and trains the runs of a setting for a few steps each, seed by seed, in a new order
for every seed: what slows the machine down slows them alike. The output has the rows of metrics.jsonl, each with its
`run`; the first steps of each run warm up and are left out.
"""

import random
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.files import as_record, iter_json_lines, read_json, write_jsonl
from mcgrpo.records import Run
from mcgrpo.train.arguments import arguments_of
from mcgrpo.train.assemble import trainer_of

SELECTION = ("select_checkpoint", "eval_steps")
"""Keys of `training` that evaluate between steps."""


def in_turns(runs: Iterable[Run]) -> Iterator[Run]:
    """The runs by seed; those of a seed in an order drawn with it."""
    runs = sorted(runs, key=lambda run: run.name)
    for seed in sorted({run.seed for run in runs}):
        turns = [run for run in runs if run.seed == seed]
        random.Random(seed).shuffle(turns)
        yield from turns


def rows_of(run: Run, model: Path, data: Path, steps: int) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl of a run's first steps, after those of its first generation batch.

    Args:
        run: the run to time.
        model: folder of the initial model.
        data: the data set, `resources/data/NAME.jsonl`.
        steps: generation batches that are timed; each has `num_iterations` optimizer steps.
    """
    from mcgrpo.train.callbacks import MetricsFile

    updates = run.training.get("num_iterations", 1)
    training = {key: value for key, value in run.training.items() if key not in SELECTION}
    short = replace(run, training=training | {"max_steps": (1 + steps) * updates})
    with tempfile.TemporaryDirectory() as folder:
        metrics = Path(folder, "metrics.jsonl")
        args = arguments_of(short, Path(folder), gpus=0)
        trainer_of(short, args, model, data, None, [MetricsFile(metrics)]).train()
        return [{"run": run.name, **row} for _, row in iter_json_lines(metrics)][updates:]


def main() -> None:
    """Time the steps of a setting's runs in turns."""
    import torch

    parser = command_line.parser(main.__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json of the study")
    parser.add_argument("--setting", required=True, help="the setting whose runs are timed")
    parser.add_argument("--model", type=Path, required=True, help="folder of the model to start from")
    parser.add_argument("--data", type=Path, required=True, help="the data set, resources/data/NAME.jsonl")
    parser.add_argument("--output", type=Path, required=True, help="JSONL, a row for each step")
    options = parser.parse_args()
    torch.set_num_threads(1)  # as the trainings of a study on a CPU
    plan = read_json(options.plan)
    timed = plan["step_times"][options.setting]
    runs = [run for row in plan["runs"] if (run := as_record(Run, row, "plan")).name in timed["runs"]]
    rows = [row for run in in_turns(runs) for row in rows_of(run, options.model, options.data, timed["steps"])]
    write_jsonl(options.output, rows)


if __name__ == "__main__":
    main()
