"""The benchmarks of a study's time: what CPU seconds are counted as, and what was known at a moment."""

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench import cpu, estimates

BUSY = f"{sys.executable} -c 'import time\nwhile time.process_time() < 1: pass'"


@pytest.mark.slow
def test_cpu_seconds_are_those_of_the_rule_whose_log_a_process_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # else it ends the servers of other tests
    rows = dict(
        cpu.measure(["bash", "-c", f"mkdir -p logs/x/grade; {BUSY} > logs/x/grade/a.log; {BUSY}; sleep 1"], None)
    )
    assert rows["job: grade"] == pytest.approx(1, abs=0.3) and rows["other"] == pytest.approx(1, abs=0.3)
    assert rows["all"] == pytest.approx(2, abs=0.4)
    assert rows["wall-clock time"] >= 3


@pytest.mark.slow
def test_the_time_of_others_is_counted_until_the_command_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(cpu, "busy", time.monotonic)  # as if another program had one core all the time
    rows = dict(cpu.measure(["bash", "-c", "sleep 3 & sleep 1"], None))
    assert rows["other processes of the machine"] <= rows["wall-clock time"] + 0.5


def test_a_moment_knows_what_had_ended_and_what_ran():
    found = estimates.at(5.0, {"ended": (0.0, 4.0), "running": (3.0, 9.0), "waiting": (6.0, 7.0)})
    assert {name: how.state for name, how in found.items()} == {
        "ended": "done", "running": "running", "waiting": "waiting",
    }  # fmt: skip
    assert (found["ended"].seconds, found["running"].start) == (4.0, 3.0)
