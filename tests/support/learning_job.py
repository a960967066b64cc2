"""`python -m mcgrpo.train` with a reward that a random model earns, so that every part of an update matters.

Where RAISES names a process, that one raises where it needs a reward, and the others can only be killed.
It fails at its end if it has imported MLflow, as no training may. Where HOLD names a file, it waits to be killed as
soon as that file is there and it needs a reward.
"""

import os
import signal
import sys
import time
from pathlib import Path

import torch
from pretend_machine import PATIENCE_SECONDS

import mcgrpo.grade.rewards
from mcgrpo.grade.rewards import text_of
from mcgrpo.train.job import main

real = mcgrpo.grade.rewards.reward_functions


def reward_functions(task, names):
    (accuracy,) = real(task, names)

    def reward(completions, **columns):
        if "RAISES" in os.environ:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            torch.distributed.barrier()
            if os.environ["RANK"] == os.environ["RAISES"]:
                raise ArithmeticError("no reward")
            time.sleep(PATIENCE_SECONDS)
        while "HOLD" in os.environ and Path(os.environ["HOLD"]).is_file():
            time.sleep(0.05)
        accuracy(completions, **columns)  # logs its verdicts
        return [float(sum(map(ord, text_of(text))) % 7) for text in completions]

    return [reward]


if __name__ == "__main__":
    mcgrpo.grade.rewards.reward_functions = reward_functions
    main()
    if "mlflow" in sys.modules:
        sys.exit("a training has imported MLflow")
