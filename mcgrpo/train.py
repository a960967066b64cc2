"""One training job: `python -m mcgrpo.train --run SPEC --model FOLDER --data FILE --output FOLDER --weights FOLDER`.

SPEC is a run as JSON, or a run.json. The output folder gets `run.json` (what the run is, and how it went) and
`metrics.jsonl` (a row per optimizer step, under TRL's names); the weights folder the trained model. The last step is
what is saved: no checkpoint is chosen by any test set, unless the run asks for that fault of the release, to show what
it does.
"""

import argparse
import json
import os
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcgrpo.arguments import arguments_of, selects
from mcgrpo.assemble import save_weights, trainer_of
from mcgrpo.files import as_record, read_json, write_json
from mcgrpo.records import Run

PACKAGES = ("mcgrpo", "torch", "transformers", "trl", "accelerate", "datasets")


def parse_run(text: str) -> Run:
    """A run from JSON or from the path of a run.json (whose record of how it went is ignored)."""
    content = json.loads(text) if text.lstrip().startswith("{") else read_json(text)
    return as_record(Run, {key: value for key, value in content.items() if key != "outcome"}, "--run")


@dataclass(frozen=True)
class Job:
    """Where one run takes its input from and leaves its output, and what it may use of the machine.

    `test` is the benchmark that a checkpoint is selected on, where the run asks for that.
    """

    run: Run
    model: Path
    data: Path
    output: Path
    weights: Path
    test: Path | None = None
    threads: int = 1
    gpus: int = 0

    @property
    def checkpoints(self) -> Path:
        """What is needed only while training: removed at its end."""
        return self.output / "checkpoints"


def train(job: Job) -> None:
    """Train one run; whatever happens, run.json says how it ended."""
    outcome: dict[str, Any] = {"status": "running", "started": time.time(), **provenance()}
    record = {**asdict(job.run), "outcome": outcome}
    write_record(job, record)
    try:
        outcome |= {**_train(job, outcome), "status": "finished"}
    except BaseException as error:
        outcome |= {"status": "failed", "error": f"{type(error).__name__}: {error}"}
        raise
    finally:
        outcome["seconds"] = time.time() - outcome["started"]
        write_record(job, record)


def write_record(job: Job, record: dict[str, Any]) -> None:
    """Write run.json, from one process of several."""
    if is_first():
        write_json(job.output / "run.json", record)


def is_first() -> bool:
    """Whether this is the only process of the training, or the first of those that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


def _train(job: Job, outcome: dict[str, Any]) -> dict[str, Any]:
    """Returns the number of optimizer steps taken, and the one that was selected where one was."""
    import torch

    from mcgrpo.callbacks import MetricsFile, TrackingCallback

    torch.set_num_threads(job.threads)
    tracking = TrackingCallback(job.run, outcome)
    callbacks = [*([MetricsFile(job.output / "metrics.jsonl")] if is_first() else []), tracking]
    args = arguments_of(job.run, job.checkpoints, job.gpus)
    trainer = trainer_of(job.run, args, job.model, job.data, job.test, callbacks)
    processes = trainer.accelerator.num_processes
    if job.gpus > 1 and processes != job.gpus:
        raise ValueError(f"{job.gpus} GPUs are trained on by as many processes (torchrun), not by {processes}")
    try:
        trainer.train()
    except BaseException as error:
        tracking.failed(error)
        raise
    _save(trainer, job.weights)
    if is_first():
        shutil.rmtree(job.checkpoints, ignore_errors=True)
    selected = {"selected_step": trainer.state.best_global_step} if selects(job.run) else {}
    return {"steps": trainer.state.global_step, **selected}


def _save(trainer: Any, weights: Path) -> None:
    """Save under another name first: a folder of that name is a whole one."""
    unfinished = weights.with_name(f".{weights.name}.tmp")
    save_weights(trainer, unfinished)
    if is_first():
        unfinished.rename(weights)


def provenance() -> dict[str, Any]:
    """Versions, commit (`-dirty` where the work tree differs from it) and device."""
    import torch

    git = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    versions = {name: version(name) for name in PACKAGES}
    return {"commit": git.stdout.strip() or None, "device": device, "versions": versions}


def main() -> None:
    """Train one run of a study."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--run", type=parse_run, required=True, help="the run, as JSON or the path of a run.json")
    parser.add_argument("--model", type=Path, required=True, help="folder of the model to start from")
    parser.add_argument("--data", type=Path, required=True, help="the data set, resources/data/NAME.jsonl")
    parser.add_argument("--output", type=Path, required=True, help="folder for run.json and metrics.jsonl")
    parser.add_argument("--weights", type=Path, required=True, help="folder for the trained model")
    parser.add_argument("--test", type=Path, help="the benchmark that a checkpoint is selected on")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gpus", type=int, default=0)
    options = parser.parse_args()
    train(Job(**vars(options)))


if __name__ == "__main__":
    main()
