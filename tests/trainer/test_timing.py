"""The seconds of each phase of a step."""

import time
from collections import defaultdict

import pytest

from mcgrpo.trainer.timing import PHASES, PhaseTimer


def test_a_phase_within_another_is_counted_once():
    timer = PhaseTimer(found := defaultdict(list))
    timer.on_step_begin(None, None, None)
    with timer.phase("logprobs"):
        with timer.phase("generation"):
            time.sleep(0.2)
        time.sleep(0.01)
    timer.on_step_end(None, None, None)
    generation, logprobs = (found[f"seconds/{name}"][0] for name in ("generation", "logprobs"))
    assert generation >= 0.2 and 0.01 <= logprobs < generation


def test_a_phase_of_an_observer_is_logged_in_none():
    timer = PhaseTimer(found := defaultdict(list))
    timer.on_step_begin(None, None, None)
    with timer.phase("observers"):
        time.sleep(0.2)
    timer.on_step_end(None, None, None)
    assert {name.removeprefix("seconds/") for name in found} == set(PHASES)
    assert sum(values[0] for values in found.values()) < 0.2 <= timer.seconds["observers"]


def test_seconds_before_a_step_are_not_of_it():
    timer = PhaseTimer(found := defaultdict(list))
    with timer.phase("rewards"):
        time.sleep(0.01)
    timer.on_step_begin(None, None, None)
    timer.on_step_end(None, None, None)
    assert found["seconds/rewards"] == pytest.approx([0.0])
