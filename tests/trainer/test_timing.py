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


def test_a_phase_within_another_is_counted_once_and_one_before_a_step_not_at_all():
    timer = PhaseTimer(found := defaultdict(list))
    with timer.phase("rewards"):
        time.sleep(0.01)
    timer.on_step_begin(None, None, None)
    with timer.phase("logprobs"):
        with timer.phase("generation"):
            time.sleep(0.2)
        time.sleep(0.01)
    time.sleep(0.03)
    timer.on_step_end(None, None, None)
    seconds = [found[f"seconds/{name}"][0] for name in ("generation", "rewards", "logprobs", "update")]
    assert seconds == pytest.approx([0.2, 0.0, 0.01, 0.03])
