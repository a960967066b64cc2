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
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcgrpo.files import as_record, read_json, read_jsonl, write_json
from mcgrpo.records import Example, Run

PACKAGES = ("mcgrpo", "torch", "transformers", "trl", "accelerate", "datasets")

TRL_CHANGES: dict[str, Any] = {
    "bf16": False,  # TRL: True where the device can; the study file says what is wanted
    "gradient_checkpointing": False,  # TRL: True
    "logging_steps": 1,  # TRL: 10; metrics.jsonl has a row per step
    "report_to": "none",  # tracking reads metrics.jsonl's rows, see mcgrpo.tracking
    "save_strategy": "no",
    "disable_tqdm": True,
    "shuffle_dataset": True,
}
"""What every run sets otherwise than TRL's defaults; a study's `training` goes on top."""


def parse_run(text: str) -> Run:
    """A run from JSON or from the path of a run.json (whose record of how it went is ignored)."""
    content = json.loads(text) if text.lstrip().startswith("{") else read_json(text)
    return as_record(Run, {key: value for key, value in content.items() if key != "outcome"}, "--run")


def config_of(job: "Job") -> Any:
    """The run's `MCGRPOConfig`; a `ReleasedConfig` where it has a fault of the release switched on."""
    from mcgrpo.released import ReleasedConfig
    from mcgrpo.trainer import MCGRPOConfig

    run = job.run
    training = {key: value for key, value in run.training.items() if key not in ("select_checkpoint", "eval_steps")}
    faults = {field.name for field in fields(ReleasedConfig)} - {field.name for field in fields(MCGRPOConfig)}
    kind = ReleasedConfig if faults & training.keys() else MCGRPOConfig
    return kind(
        **{**TRL_CHANGES, **(selection(run) if selects(run) else {}), **training},
        output_dir=str(job.checkpoints),
        loss_type=run.loss_type,
        estimator=run.estimator,
        num_generations=run.num_generations,
        reward_weights=list(run.rewards.values()),
        seed=run.seed,
        use_cpu=job.gpus == 0,
    )


def selects(run: Run) -> bool:
    """Whether the checkpoint that does best on the test split is to be kept."""
    return run.training.get("select_checkpoint", "last") == "best-on-test"


def selection(run: Run) -> dict[str, Any]:
    """TRL's arguments for that: evaluations of the mean reward on the test split, one sample a question.

    They take place every `eval_steps`, and at the last step.
    """
    every = run.training.get("eval_steps", 100)
    return {
        "eval_strategy": "steps",
        "eval_steps": every,
        "save_strategy": "steps",
        "save_steps": every,
        "save_total_limit": 1,
        "save_only_model": True,
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_reward",
        "num_generations_eval": 1,
        "per_device_eval_batch_size": run.training["per_device_train_batch_size"],
    }


def prompts_of(run: Run, data_file: Path, split: str = "train") -> Any:
    """One split as a `datasets.Dataset` with the columns prompt, answer and solution."""
    from datasets import Dataset

    from mcgrpo.prompts import as_prompt

    examples = [example for example in read_jsonl(data_file, Example) if example.split == split]
    if not examples:
        raise ValueError(f"{data_file}: no example of split {split!r}")
    return Dataset.from_list(
        [
            {"prompt": as_prompt(run.prompt, example.question), "answer": example.answer, "solution": example.solution}
            for example in examples
        ]
    )


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
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.trainer_callback import PrinterCallback

    from mcgrpo.callbacks import MetricsFile, TrackingCallback
    from mcgrpo.released import ReleasedConfig, ReleasedTrainer
    from mcgrpo.rewards import reward_functions
    from mcgrpo.trainer import MCGRPOTrainer

    torch.set_num_threads(job.threads)
    tracking = TrackingCallback(job.run, outcome)
    tokenizer = AutoTokenizer.from_pretrained(job.model, padding_side="left")
    args = config_of(job)
    trainer = (ReleasedTrainer if isinstance(args, ReleasedConfig) else MCGRPOTrainer)(
        # fp32 master weights: AdamW in bf16 does not move a 0.02 weight at a learning rate of 1e-6
        model=AutoModelForCausalLM.from_pretrained(job.model, dtype=torch.float32),
        reward_funcs=reward_functions(job.run.task, list(job.run.rewards)),
        args=args,
        train_dataset=prompts_of(job.run, job.data),
        eval_dataset=prompts_of(job.run, job.test, "test") if selects(job.run) else None,
        processing_class=tokenizer,
        callbacks=[*([MetricsFile(job.output / "metrics.jsonl")] if is_first() else []), tracking],
    )
    processes = trainer.accelerator.num_processes
    if job.gpus > 1 and processes != job.gpus:
        raise ValueError(f"{job.gpus} GPUs are trained on by as many processes (torchrun), not by {processes}")
    trainer.remove_callback(PrinterCallback)
    try:
        trainer.train()
    except BaseException as error:
        tracking.failed(error)
        raise
    _save(trainer, tokenizer, job.weights)
    if is_first():
        shutil.rmtree(job.checkpoints, ignore_errors=True)
    selected = {"selected_step": trainer.state.best_global_step} if selects(job.run) else {}
    return {"steps": trainer.state.global_step, **selected}


def _save(trainer: Any, tokenizer: Any, weights: Path) -> None:
    """Save under another name first: a folder of that name is a whole one."""
    unfinished = weights.with_name(f".{weights.name}.tmp")
    trainer.save_model(str(unfinished))
    trainer.accelerator.wait_for_everyone()
    if is_first():
        tokenizer.save_pretrained(unfinished)
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
