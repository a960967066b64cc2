"""The seconds of each phase of a step."""

import time
from collections import defaultdict

import pytest

from mcgrpo.trainer.timing import PhaseTimer


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """It runs while somebody sleeps, and at no other time."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.append(now.pop() + seconds))


def test_a_phase_within_another_is_counted_once():
    timer = PhaseTimer(found := defaultdict(list))
    timer.on_step_begin(None, None, None)
    with timer.phase("logprobs"):
        with timer.phase("generation"):
            time.sleep(0.2)
        time.sleep(0.01)
    timer.on_step_end(None, None, None)
    generation, logprobs = (found[f"seconds/{name}"][0] for name in ("generation", "logprobs"))
    assert (generation, logprobs) == pytest.approx((0.2, 0.01))
    assert found["seconds/update"] == pytest.approx([0.0])


def test_seconds_before_a_step_are_not_of_it():
    timer = PhaseTimer(found := defaultdict(list))
    with timer.phase("rewards"):
        time.sleep(0.01)
    timer.on_step_begin(None, None, None)
    timer.on_step_end(None, None, None)
    assert found["seconds/rewards"] == pytest.approx([0.0])
