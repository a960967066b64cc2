import shutil

import pytest
from learning_trainings import LONG, killed_at, learned, run
from tiny_training import digits_reward
from training_jobs import job, make_inputs

from mcgrpo.train.arguments import arguments_of
from mcgrpo.train.assemble import trainer_of
from mcgrpo.train.lengths import fitting


@pytest.fixture(scope="session")
def inputs(made_once):
    return made_once("training-inputs", make_inputs)


@pytest.fixture(scope="session")
def assembled(inputs):
    """Folder, run -> a study's trainer, not yet trained."""

    def assembled(folder, run):
        args = arguments_of(run, folder / "checkpoints", 0)
        examples, _ = fitting(run, inputs / "model", inputs / "data.jsonl")
        trainer = trainer_of(run, args, inputs / "model", examples, None, [])
        trainer.reward_funcs = [digits_reward]  # a random model's answers are all wrong: nothing to learn from
        return trainer

    return assembled


@pytest.fixture(scope="session")
def trainings(inputs, made_once):
    """A training of eight steps, and one that was killed when it had the checkpoint of step 4."""

    def both(folder):
        return [job(inputs, folder / name, LONG, save_steps=2) for name in ("whole", "killed")]

    def make(folder):
        whole, killed = both(folder)
        done = run(whole)
        assert done.returncode == 0, done.stderr
        assert learned(whole)
        killed_at(killed, 4)
        shutil.rmtree(killed.checkpoints / "checkpoint-2", ignore_errors=True)  # if it was killed before it did so

    return both(made_once("trainings", make))


@pytest.fixture
def killed(trainings, inputs, tmp_path):
    """The killed training once more, elsewhere."""
    shutil.copytree(trainings[1].home, tmp_path / "unfinished")
    return job(inputs, tmp_path, LONG, save_steps=2)
