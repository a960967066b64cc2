"""Which times of trainings can be compared: those on GPUs, and those of steps that were timed in turns."""

from mcgrpo.analyse.paired import Weights
from mcgrpo.analyse.records import GPUS, STEP_TIME
from mcgrpo.analyse.scored import Scores

ON_CPU = "jobs on a CPU share its cores, so their times depend on what else ran; `step_times` times them in turns"
"""Why a time is not judged."""
IN_TURNS = "processor time of steps timed in turns"
"""What `over` ends in where `STEP_TIME` stands for the seconds of a step."""


def in_turns(weights: Weights, scores: Scores) -> Weights:
    """The times of the same cells that were measured in turns, if all of them have one; else none."""
    turns = {key._replace(measure=STEP_TIME): weight for key, weight in weights.items()}
    steps = all(key.measure == "seconds_per_step" for key in weights)
    return turns if steps and all(key in scores for key in turns) else {}


def is_unjudged(weights: Weights, scores: Scores) -> bool:
    """Whether any of these cells is a time of trainings that are not known to have had GPUs to themselves.

    Times that were measured in turns stand in for them.
    """
    if in_turns(weights, scores):
        return False
    held = [scores.get(key._replace(measure=GPUS), {}) for key in weights if key.measure.startswith("seconds")]
    return not all(seeds and all(score.value for score in seeds.values()) for seeds in held)
