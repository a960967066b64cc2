"""An example of a run, to be changed with `dataclasses.replace`."""

from mcgrpo.files import write_json
from mcgrpo.records import Run
from mcgrpo.sums import seal

RUN = Run(
    study="mini",
    setting="toy",
    method="mc-grpo",
    num_generations=4,
    variant="default",
    seed=3,
    model="toy",
    dataset="sums",
    prompt="plain",
    task="gsm8k",
    loss_type="grpo",
    estimator="median-mad",
    rewards={"accuracy": 1.0},
    training={"learning_rate": 2e-4, "max_steps": 3},
)


def write_sealed(path, record):
    """A run.json, as a training leaves it that has finished."""
    write_json(path, record)
    seal(path)
