"""One training job: `python -m mcgrpo.train --run SPEC --model FOLDER --data FILE --output FOLDER --weights FOLDER`.

SPEC is a run as JSON, or a run.json. The output folder gets `run.json` (the run and its outcome), `metrics.jsonl` (a
row per optimizer step, with TRL's names), `groups.jsonl` (the numbers of all rollouts) and optionally `rollouts.jsonl`
(some rollouts as text); the weights folder gets the trained model. The weights of the last step are saved: no test set
selects a checkpoint, unless the run has that fault of the release.

Until it is finished, a training is in the folder `--unfinished`, with a checkpoint every `--save-steps` steps. After a
crash the same command resumes it, on a CPU with the same result to the bit (see `mcgrpo.train.attempts`).
"""

import json
import os
import shutil
import signal
import sys
import time
import traceback
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.files import as_new, as_record, read_json
from mcgrpo.launch.gpus import PRETENDED
from mcgrpo.launch.processes import die_with_parent, is_first
from mcgrpo.records import Outcome, Run
from mcgrpo.study.fingerprint import fingerprint
from mcgrpo.study.paths import ERROR, METRICS, RECORD
from mcgrpo.study.schedule import schedule
from mcgrpo.study.settings import selects_checkpoint
from mcgrpo.study.trained import leave_error, with_error_left, write_record
from mcgrpo.sums import FOLDER_LIST, WEIGHTS_LIST, seal, sha256
from mcgrpo.train import attempts
from mcgrpo.train.arguments import arguments_of
from mcgrpo.train.assemble import save_weights, trainer_of
from mcgrpo.train.attempts import GROWING
from mcgrpo.train.lengths import fitting
from mcgrpo.train.provenance import VERSIONS, data_set, initial_model, provenance
from mcgrpo.train.rollout_engine import OPERATIONAL, engine_name, take_server
from mcgrpo.train.sharding import check_sharded

TERMINATED = "terminated"
"""The error of a process that got SIGTERM, as torchrun sends it to the others when one has failed."""
DISK_FULL_BYTES = 1 << 20
"""A disk with less than this free counts as full."""
_STEPS_HELP = "optimizer steps between two checkpoints; default: MCGRPO_SAVE_STEPS, which the workflow sets, or none"
_TABLES_HELP = "which rollouts to write down, as JSON; default: MCGRPO_ROLLOUT_TABLES, which the workflow sets, or none"


def parse_run(text: str) -> Run:
    """A run from JSON or from the path of a run.json (whose outcome is ignored)."""
    content = json.loads(text) if text.lstrip().startswith("{") else read_json(text)
    return as_record(Run, {key: value for key, value in content.items() if key != "outcome"}, "--run")


def parse_tables(text: str) -> dict[str, int] | None:
    """`rollout_tables` of a study from JSON, with the defaults of its schema; None for an empty text."""
    if not text:
        return None
    known, given = {"steps": 3, "prompts": 2}, json.loads(text)
    if odd := given.keys() - known.keys():
        raise ValueError(f"rollout_tables has no key {min(odd)!r}")
    return known | given


@dataclass(frozen=True)
class Job:
    """The inputs and outputs of one run, and its share of the machine.

    Args:
        unfinished: folder of the training until it is finished; by default beside the output.
        test: the benchmark for selecting a checkpoint, if the run does so.
        save_steps: optimizer steps between two checkpoints; None for none.
        code: fingerprint of the training code; computed by default.
        rollout_tables: as in a study: which rollouts are recorded as text; None for none.
        sums: the list of the sums of the model's files; without one they are not compared.
    """

    run: Run
    model: Path
    data: Path
    output: Path
    weights: Path
    unfinished: Path | None = None
    test: Path | None = None
    save_steps: int | None = None
    threads: int = 1
    gpus: int = 0
    code: str = ""
    rollout_tables: dict[str, int] | None = None
    sums: Path | None = None

    @property
    def home(self) -> Path:
        """The folder of the unfinished training."""
        return self.unfinished or self.output.with_name(f".{self.output.name}.unfinished")

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints, needed only while training."""
        return self.home / attempts.CHECKPOINTS


def run_job(job: Job) -> None:
    """Train or resume one run; if it fails, the error is in run.json of the unfinished training."""
    with attempts.alone(job.home) if is_first() else nullcontext():
        check(job)
        record_attempt(job)


def record_attempt(job: Job) -> None:
    """Train from the last checkpoint, if there is one, to the end."""
    begun = time.time()
    if is_first():
        (job.home / ERROR).unlink(missing_ok=True)  # of an earlier attempt
    model = initial_model(job.model, job.sums) if is_first() else None  # before an earlier attempt is cleared
    earlier = attempts.begin(job.home, identity(job)) if is_first() else attempts.Earlier()
    outcome = Outcome(
        "running",
        earlier.started or begun,
        gpus=job.gpus,
        **provenance(),
        data=data_set(job.data),
        test=data_set(job.test, "test") if job.test else None,
        model=model,
        rollout_tables=job.rollout_tables,
    )
    write(job, outcome)
    try:
        outcome = train(job, outcome, earlier)
        outcome = replace(outcome, sums=seal_outputs(job) if is_first() else {}, status="finished")
    except BaseException as error:
        outcome = replace(outcome, status="failed", error=f"{type(error).__name__}: {error}")
        raise
    finally:
        write(job, replace(outcome, seconds=earlier.seconds + time.time() - begun))
    if is_first():
        finish(job)


def check(job: Job) -> None:
    """Refuse what cannot be trained, before anything is loaded.

    Raises:
        FileNotFoundError: names the missing input.
        FileExistsError: names the existing trained model.
        ValueError: for GPUs, where torch sees none; for flash-attention, where it is not installed (transformers would
            download a kernel from the hub).
    """
    import torch

    for path in (job.model, job.data, *([job.test] if job.test else [])):
        if not path.exists():
            raise FileNotFoundError(f"{path} is not there (any more)")
    if job.weights.exists():
        raise FileExistsError(f"{job.weights} is there already: remove it to train anew")
    if job.gpus and not torch.cuda.is_available() and PRETENDED not in os.environ:
        raise ValueError(f"--gpus {job.gpus}: torch sees no GPU on this machine")
    if job.run.training.get("attn_implementation") == "flash_attention_2" and not find_spec("flash_attn"):
        raise ValueError("attn_implementation=flash_attention_2: the package flash-attn is not installed")


def identity(job: Job) -> dict[str, Any]:
    """Everything that the result of a training depends on; an attempt with another identity starts again."""
    training = {key: value for key, value in job.run.training.items() if key not in OPERATIONAL}
    model = sorted(path for path in job.model.iterdir() if path.is_file())
    return {
        "run": asdict(job.run) | {"training": training},
        "model": [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in model],
        "data": [sha256(path) for path in (job.data, job.test) if path],
        "code": job.code or fingerprint("mcgrpo.train"),
        "packages": VERSIONS,
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "device": "cuda" if job.gpus else "cpu",
    }


def write(job: Job, outcome: Outcome) -> None:
    """Write run.json, from the first process, others leave their error; a full disk does not hide an earlier error.

    An error that another process has left is taken for the cause of the first one's own.
    """
    try:
        if is_first():
            outcome = outcome if outcome.status == "finished" else with_error_left(job.home, outcome)
            write_record(job.home / RECORD, job.run, outcome)
        elif outcome.status == "failed" and outcome.error != f"SystemExit: {TERMINATED}":
            leave_error(job.home, outcome.error)
    except OSError as error:
        print(f"warning: the outcome could not be written: {error}", file=sys.stderr)


def train(job: Job, outcome: Outcome, earlier: attempts.Earlier) -> Outcome:
    """Train; returns the outcome with the number of optimizer steps, and the selected step if the run selects one."""
    import torch
    from accelerate.utils import broadcast_object_list

    from mcgrpo.train.callbacks import Checkpoints, MetricsFile
    from mcgrpo.train.rollout_files import RolloutFiles

    torch.set_num_threads(job.threads)
    callbacks = [MetricsFile(job.home / METRICS), Checkpoints(earlier)]  # in this order
    args = arguments_of(job.run, job.checkpoints, job.gpus, job.save_steps)
    take_server(args)
    schedule(job.run, args.world_size, outcome.data.rows)  # refuses fewer prompts than a batch takes
    examples, left_out = fitting(job.run, job.model, job.data)
    outcome = replace(outcome, data=replace(outcome.data, rows=len(examples), left_out=left_out))
    schedule(job.run, args.world_size, len(examples))
    test = fitting(job.run, job.model, job.test, "test")[0] if job.test and selects_checkpoint(job.run) else None
    trainer = trainer_of(job.run, args, job.model, examples, test, callbacks)
    check_sharded(trainer)
    RolloutFiles(trainer, job.home, job.rollout_tables)
    processes = trainer.accelerator.num_processes
    if job.gpus > 1 and processes != job.gpus:
        raise ValueError(f"{job.gpus} GPUs are trained on by as many processes (torchrun), not by {processes}")
    trainer.accelerator.wait_for_everyone()  # by now the first process has cleared the folder
    # The first process's, for all: a shared file system may show another machine an older state.
    (checkpoint,) = broadcast_object_list([attempts.last_checkpoint(job.checkpoints)])
    if checkpoint and is_first():  # lines of two processes may end within each other
        print(f"going on from {checkpoint}", flush=True)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if not trainer.state.global_step:
        raise ValueError("the training ended without one optimizer step")
    best = trainer.state.best_model_checkpoint if selects_checkpoint(job.run) else None
    if best and not Path(best).is_dir():
        raise ValueError(f"the selected checkpoint {best} is not there any more: remove {job.home} to train anew")
    save_weights(trainer, job.home / "weights")
    selected = trainer.state.best_global_step if selects_checkpoint(job.run) else None
    return replace(outcome, rollouts=engine_name(args), steps=trainer.state.global_step, selected_step=selected)


def seal_outputs(job: Job) -> dict[str, str]:
    """Write the checksums of the trained weights; returns the SHA-256 of that list and of the run's files."""
    as_new(job.home / "weights")
    seal(job.home / "weights")
    return {name: sha256(path) for name in (WEIGHTS_LIST, *GROWING) if (path := job.home / name).is_file()}


def finish(job: Job) -> None:
    """Move the outputs to their folders, then remove the unfinished training."""
    job.weights.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(job.home / "weights", job.weights)
    shutil.copy(job.weights / FOLDER_LIST, job.weights.with_name(f"{job.weights.name}.sha256"))
    job.output.mkdir(parents=True, exist_ok=True)
    for name in (*GROWING, RECORD):
        if (job.home / name).exists():  # rollouts are optional
            shutil.copy(job.home / name, job.output)
    seal(job.output / RECORD)
    attempts.clear(job.home)
    shutil.rmtree(job.home, ignore_errors=True)  # the thread that samples the machine may still write there


def main() -> None:
    """Train one run of a study."""
    if "RANK" in os.environ:
        die_with_parent()  # torchrun, which holds the GPUs for its processes
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--run", type=parse_run, required=True, help="the run, as JSON or the path of a run.json")
    parser.add_argument("--model", type=Path, required=True, help="folder of the model to start from")
    parser.add_argument("--sums", type=Path, help="the list of the sums of its files, which are compared")
    parser.add_argument("--data", type=Path, required=True, help="the data set, resources/data/NAME.jsonl")
    parser.add_argument("--output", type=Path, required=True, help="folder for run.json and metrics.jsonl")
    parser.add_argument("--weights", type=Path, required=True, help="folder for the trained model")
    parser.add_argument("--unfinished", type=Path, help="folder of the training until it is finished")
    parser.add_argument("--test", type=Path, nargs="?", help="the benchmark that a checkpoint is selected on")
    parser.add_argument("--save-steps", type=int, default=os.environ.get("MCGRPO_SAVE_STEPS"), help=_STEPS_HELP)
    tables = os.environ.get("MCGRPO_ROLLOUT_TABLES", "")
    parser.add_argument("--rollout-tables", type=parse_tables, default=tables, help=_TABLES_HELP)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--code", default="", help="what tells this code from other code")
    job = Job(**vars(parser.parse_args()))
    # sent by torchrun when another process fails, by SLURM to end a job: record it in run.json
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        run_job(job)
    except Exception as error:
        traceback.print_exc()
        sys.exit(explained(job, error))


def explained(job: Job, error: Exception) -> str:
    """The error in a line, and one more if the disk is full: torch's error does not say so."""
    line = f"error: {job.run.name}: {error}"
    if job.home.exists() and (free := shutil.disk_usage(job.home).free) < DISK_FULL_BYTES:
        line += f"\nthe disk of {job.home} is full ({free} bytes are free)"
    return line
