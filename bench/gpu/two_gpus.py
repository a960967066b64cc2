"""Trainings by two processes on two GPUs, started as a study starts them: a copy of the weights on each, and FSDP2.

They go through a reference model, gradients that accumulate, checkpoints and, where it is installed, a vLLM in each
process. Other parts use one GPU, which cannot show what goes wrong between two.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.gpu.checks import Row, last_line, run
from mcgrpo.data.toy.examples import examples
from mcgrpo.data.toy.models import build
from mcgrpo.files import write_jsonl
from mcgrpo.records import Run

MODEL = {"architecture": "qwen3", "hidden_size": 768, "layers": 4, "heads": 12, "intermediate_size": 2304}
TINY = {"architecture": "qwen3", "hidden_size": 64, "layers": 2, "heads": 2, "intermediate_size": 64}
CASES: dict[str, dict[str, Any]] = {"a copy on each": {}, "fsdp": {"sharding": "fsdp"}}
TRAINING = {
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "num_iterations": 2,
    "max_steps": 4,
    "learning_rate": 1e-5,
    "beta": 0.04,
    "max_completion_length": 24,
    "gradient_checkpointing": True,
}
VLLM = {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": 256}
SAVE_STEPS = 2


def two_gpus(device: str, names: list[str], left: Callable[[], float]) -> Iterator[Row]:
    """A row for each case: the seconds of a training with its start; on a CPU, two GPUs are pretended.

    Args:
        device: "cuda" or "cpu".
        names: of the GPUs that may be used, as in CUDA_VISIBLE_DEVICES.
        left: the seconds that are left.
    """
    if device == "cuda" and len(names) < 2:
        yield Row("two-gpus", status="skipped", note=f"needs two GPUs, {len(names)} may be used")
        return
    two = ",".join(names[:2]) if device == "cuda" else "a,b"
    where = {"CUDA_VISIBLE_DEVICES": two} | ({} if device == "cuda" else {"MCGRPO_DEVICES": two})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        build(MODEL if device == "cuda" else TINY, folder / "model")
        write_jsonl(folder / "data.jsonl", examples("two-step", "train", 64, 0))
        for name, training in CASES.items():
            if not left():
                yield Row("two-gpus", name, status="skipped", note="no time left")
                continue
            start = time.monotonic()
            done = run(command(folder, name, training, device), left(), MCGRPO_LOCKS=str(folder / "locks"), **where)
            status = {0: "ok", 124: "skipped"}.get(done.returncode, "failed")  # 124: out of time
            note = "" if status == "ok" else error(done.stderr)
            yield Row("two-gpus", name, "seconds", time.monotonic() - start, status, note)


def error(said: str) -> str:
    """A training's own last line, if it has come to that; torchrun's output ends in a frame."""
    own = [line for line in said.splitlines() if line.startswith("error: ")]
    return own[0] if own else last_line(said)


def command(folder: Path, name: str, training: dict[str, Any], device: str) -> list[str]:
    """The command line of a case's training."""
    on_gpus = device == "cuda"
    settings = TRAINING | {"bf16": on_gpus} | training | (VLLM if on_gpus and find_spec("vllm") else {})
    case = Run(
        study="gpu-check",
        setting="two-gpus",
        method="mc-grpo",
        num_generations=2,
        variant=name,
        seed=0,
        model="model",
        dataset="two-step",
        prompt="plain",
        task="gsm8k",
        loss_type="grpo",
        estimator="median-mad",
        rewards={"accuracy": 1.0},
        training=settings,
    )
    options = {"run": json.dumps(asdict(case)), "model": folder / "model", "data": folder / "data.jsonl"}
    options |= {part: folder / part / name for part in ("output", "weights", "unfinished")}
    options |= {"gpus": 2, "save-steps": SAVE_STEPS}
    launch = ["-m", "mcgrpo.launch", "--gpus", "2", "--processes", "2", "mcgrpo.train"]
    return [sys.executable, *launch, *(f"--{key}={value}" for key, value in options.items())]
