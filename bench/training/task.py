"""The task of all contenders: prompts, rewards and recipe of the mini study, and a converged model."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.training.measure import Task
from mcgrpo.grade.rewards import reward_functions
from mcgrpo.records import Run
from mcgrpo.study.plan import expand
from mcgrpo.study.read import read
from mcgrpo.train.arguments import TRL_CHANGES
from mcgrpo.train.assemble import prompts_of

RUN = "toy-qwen3/grpo/G8/fixed-rows/seed0"
"""The most successful training of the mini study, whose model all contenders start from."""
RIGHT = 0.7
"""About the share of right answers of that model, sampled."""


def mini_task(folder: Path) -> Task:
    """Model, prompts and recipe of the mini study; the model is made in `folder` at the first call."""
    study = read(["config/mini.yaml"])
    run = expand(study)[RUN].run
    data, model = folder / f"{run.dataset}.jsonl", folder / "converged"
    if not model.exists():
        make(study, run, folder, data, model)
    settings = {
        **TRL_CHANGES,
        **{key: study["training"][key] for key in ("epsilon", "temperature", "max_completion_length")},
        "learning_rate": 1e-6,  # the paper's; so small that the rewards stay where they are
        "loss_type": run.loss_type,
        "use_cpu": True,
    }
    return Task(model, prompts_of(run, data), reward_functions(run.task, list(run.rewards)), settings, RIGHT)


def make(study: dict[str, Any], run: Run, folder: Path, data: Path, model: Path) -> None:
    """Data set, warm-started model, and its training, by the stages of the workflow."""
    start = folder / "start"
    stage("data", "--spec", json.dumps(study["datasets"][run.dataset]), "--output", data)
    if not start.exists():
        stage("toy.models", "--spec", json.dumps(study["models"][run.model]["toy"]), "--output", start)
    places = ["--model", start, "--data", data, "--output", folder / "run", "--weights", model]
    stage("train", "--run", json.dumps(vars(run)), *places)


def stage(name: str, *arguments: Any) -> None:
    """One stage of the workflow; what it prints is shown only if it fails."""
    command = [sys.executable, "-m", f"mcgrpo.{name}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")


def scripted_reward(share: float) -> Callable[..., list[float]]:
    """Right or wrong by the tokens alone, right in that share of completions: for those whose length is forced."""

    def reward(completion_ids: list[list[int]], **kwargs: Any) -> list[float]:
        return [2.0 * (random.Random(str(ids)).random() < share) for ids in completion_ids]

    return reward
