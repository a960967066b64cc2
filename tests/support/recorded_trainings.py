"""Tiny trainings that leave `groups.jsonl` and `rollouts.jsonl`, and what their observers were called with."""

import shutil
from collections import defaultdict

from tiny_training import Ours, digits_reward, trainer_of
from transformers import TrainerCallback

from mcgrpo.train import attempts
from mcgrpo.train.callbacks import Checkpoints
from mcgrpo.train.rollout_files import RolloutFiles

TABLES = {"steps": 3, "prompts": 2}
RECIPES = {
    "default": {},
    "compact": {"beta": 0.0, "loss_type": "dapo"},
    "iterations": {"num_iterations": 2, "advantage_flip_rate": 0.3},
    "buffered": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "steps_per_generation": 4},
    "several a step": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "steps_per_generation": 1},
}


def telling_reward(completions, log_extra, log_metric, **kwargs):
    """Logs all that a reward function can log."""
    log_extra("length", [len(completion) for completion in completions])
    log_metric("digits", sum(map(str.isdigit, "".join(completions))))
    return digits_reward(completions)


class Copies(TrainerCallback):
    """Keeps the folder of a training as it is when the checkpoint of one of the steps is complete, as a kill would."""

    def __init__(self, folder, copies):
        self.folder, self.copies = folder, copies

    def on_save(self, args, state, control, **kwargs):
        if state.global_step in self.copies:
            shutil.copytree(self.folder, self.copies[state.global_step])


def recorded(folder, kind=Ours, tables=TABLES, checkpoint=None, reward=telling_reward, copies=None, **settings):
    """A trainer that has trained, and what its observers were called with: (step, drawn).

    Args:
        copies: step -> folder that gets a copy of the unfinished training once that step has its checkpoint.
    """
    folder.mkdir(exist_ok=True)
    trainer, seen = trainer_of(kind, folder / "checkpoints", reward, **settings), []
    trainer.add_callback(Checkpoints(attempts.Earlier()))
    trainer.add_callback(Copies(folder, copies or {}))
    RolloutFiles(trainer, folder, tables)
    trainer.observers.append(lambda drawn: seen.append((trainer.state.global_step + 1, drawn)))
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer, seen


def by_group(rows):
    """Rows of rollouts.jsonl by step and prompt, in order."""
    found = defaultdict(list)
    for row in rows:
        found[row.step, row.prompt].append(row)
    return found
