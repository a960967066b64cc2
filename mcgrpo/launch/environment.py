"""The environment variables that a study's jobs inherit from Snakemake."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcgrpo import shipped

STUDY_FILES = "MCGRPO_STUDY_FILES"
"""Environment variable of jobs: the files of their study, as JSON."""
KEPT_BYTES = 1 << 30
"""What a job on a CPU keeps of the memory that it has freed, at most."""


def prepare(config: dict[str, Any], study_files: Sequence[str] = ()) -> list[str]:
    """Set what a study's jobs need; what the user has set (MLFLOW_TRACKING_URI, OMP_NUM_THREADS ...) stays.

    Args:
        config: the study.
        study_files: the files that it is read from.

    Returns:
        These, by `named`.
    """
    defaults = {
        # Several jobs share the cores, and torch takes all of them unless told.
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # Jobs write to log files, in which a progress bar is noise (transformers heeds the hub's variable, too).
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        # Else TRL looks up the hub's address in a thread of every training, while accelerate changes the environment:
        # the C library's `getenv` and `setenv` are not safe beside one another, and one of some thousand crashed.
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # Else vLLM posts the GPU, the model and its settings from a thread, too.
        "VLLM_NO_USAGE_STATS": "1",
        # Else TRL imports mlflow, which takes a second or two; trainings are tracked by `mcgrpo.tracking` alone.
        "DISABLE_MLFLOW_INTEGRATION": "TRUE",
        # Else vLLM 0.31 compiles FlashInfer's sampler when it starts, and dies without nvcc (vLLM issue 49497). Greedy
        # requests and those with a seed, as a study's, do not use it.
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
    }
    # glibc gives freed memory back to the system, which clears it anew for the next step: a tenth of a small training.
    if not config.get("gpus"):
        defaults |= dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(KEPT_BYTES))
    os.environ |= defaults | os.environ
    # Libraries write text in the encoding of the locale: with ASCII a training ends when its tokenizer is saved.
    os.environ["PYTHONUTF8"] = "1"
    # A job's Python is that of Snakemake, also where the environment is not activated.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    # No parameters of a rule: they change no result, and so rerun nothing.
    os.environ[STUDY_FILES] = json.dumps(files := named(study_files))
    for key in ("save_steps", "rollout_tables"):
        os.environ.pop(f"MCGRPO_{key.upper()}", None)
        if value := config.get(key):
            os.environ[f"MCGRPO_{key.upper()}"] = json.dumps(value)
    return files


def named(study_files: Sequence[str | Path]) -> list[str]:
    """The files of a study, relative to this folder; without the paper's, which a call need not name."""
    return [os.path.relpath(file) for file in study_files if Path(file).resolve() != shipped.STUDY]
