"""One training job: `python -m mcgrpo.train --run SPEC --model FOLDER --data FILE --output FOLDER --weights FOLDER`.

SPEC is a run as JSON, or a run.json. The output folder gets `run.json` (what the run is, and how it went) and
`metrics.jsonl` (a row per optimizer step, under TRL's names); the weights folder the trained model. The last step is
what is saved: no checkpoint is chosen by any test set.
"""

import argparse
import json
import os
import subprocess
import time
from dataclasses import asdict, dataclass
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
    """The run's `MCGRPOConfig`."""
    from mcgrpo.trainer import MCGRPOConfig

    run = job.run
    return MCGRPOConfig(
        **{**TRL_CHANGES, **run.training},
        output_dir=str(job.output / "checkpoints"),
        loss_type=run.loss_type,
        estimator=run.estimator,
        num_generations=run.num_generations,
        reward_weights=list(run.rewards.values()),
        seed=run.seed,
        use_cpu=job.gpus == 0,
    )


def prompts_of(run: Run, data_file: Path) -> Any:
    """The train split as a `datasets.Dataset` with the columns prompt, answer and solution."""
    from datasets import Dataset

    from mcgrpo.prompts import as_prompt

    examples = [example for example in read_jsonl(data_file, Example) if example.split == "train"]
    if not examples:
        raise ValueError(f"{data_file}: no example of split 'train'")
    return Dataset.from_list(
        [
            {"prompt": as_prompt(run.prompt, example.question), "answer": example.answer, "solution": example.solution}
            for example in examples
        ]
    )


@dataclass(frozen=True)
class Job:
    """Where one run takes its input from and leaves its output, and what it may use of the machine."""

    run: Run
    model: Path
    data: Path
    output: Path
    weights: Path
    threads: int = 1
    gpus: int = 0


def train(job: Job) -> None:
    """Train one run; whatever happens, run.json says how it ended."""
    outcome: dict[str, Any] = {"status": "running", "started": time.time(), **provenance()}
    record = {**asdict(job.run), "outcome": outcome}
    write_json(job.output / "run.json", record)
    try:
        outcome |= {"steps": _train(job, outcome), "status": "finished"}
    except BaseException as error:
        outcome |= {"status": "failed", "error": f"{type(error).__name__}: {error}"}
        raise
    finally:
        outcome["seconds"] = time.time() - outcome["started"]
        write_json(job.output / "run.json", record)


def _train(job: Job, outcome: dict[str, Any]) -> int:
    """Returns the number of optimizer steps taken."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.trainer_callback import PrinterCallback

    from mcgrpo.callbacks import MetricsFile, TrackingCallback
    from mcgrpo.rewards import reward_functions
    from mcgrpo.trainer import MCGRPOTrainer

    torch.set_num_threads(job.threads)
    tracking = TrackingCallback(job.run, outcome)
    tokenizer = AutoTokenizer.from_pretrained(job.model, padding_side="left")
    trainer = MCGRPOTrainer(
        # fp32 master weights: AdamW in bf16 does not move a 0.02 weight at a learning rate of 1e-6
        model=AutoModelForCausalLM.from_pretrained(job.model, dtype=torch.float32),
        reward_funcs=reward_functions(job.run.task, list(job.run.rewards)),
        args=config_of(job),
        train_dataset=prompts_of(job.run, job.data),
        processing_class=tokenizer,
        callbacks=[MetricsFile(job.output / "metrics.jsonl"), tracking],
    )
    trainer.remove_callback(PrinterCallback)
    try:
        trainer.train()
    except BaseException as error:
        tracking.failed(error)
        raise
    _save(trainer, tokenizer, job.weights)
    return trainer.state.global_step


def _save(trainer: Any, tokenizer: Any, weights: Path) -> None:
    """Save under another name first: a folder of that name is a whole one."""
    unfinished = weights.with_name(f".{weights.name}.{os.getpid()}.tmp")
    trainer.save_model(str(unfinished))
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
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gpus", type=int, default=0)
    options = parser.parse_args()
    train(Job(**vars(options)))


if __name__ == "__main__":
    main()
