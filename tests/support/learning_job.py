"""`python -m mcgrpo.train` with a reward that a random model earns, so that every part of an update matters."""

import mcgrpo.grade.rewards
from mcgrpo.train.job import main


def reward(completions, **kwargs):
    return [float(sum(map(ord, text)) % 7) for text in completions]


if __name__ == "__main__":
    mcgrpo.grade.rewards.reward_functions = lambda task, names: [reward]
    main()
