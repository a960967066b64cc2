"""Ports of jobs that start at once: real processes that take them and hold them."""

import socket
import subprocess
import sys

import pytest
from pretend_machine import PATIENCE_SECONDS, line_of

from mcgrpo.launch import ports

HOLD = "import sys; from mcgrpo.launch import ports; ports.PORTS = range(*map(int, sys.argv[1:])); "
HOLD += "port, lock = ports.take(); print(port, flush=True); input()"
FOUR, TWO = range(28000, 28004), range(28000, 28002)


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    monkeypatch.setenv("MCGRPO_LOCKS", str(tmp_path / "locks"))


@pytest.fixture
def start():
    """Start a process that holds a port of a range until it is killed."""
    started = []

    def start(ports):
        command = [sys.executable, "-c", HOLD, str(ports.start), str(ports.stop)]
        started.append(subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=PATIENCE_SECONDS)


def port_of(process):
    return int(line_of(process))


def test_processes_that_start_at_once_have_ports_of_their_own(start):
    processes = [start(FOUR) for _ in FOUR]
    taken = [port_of(process) for process in processes]
    assert set(taken) == {*FOUR} and set(FOUR) < set(ports.PORTS)
    processes[1].kill()
    processes[1].wait(PATIENCE_SECONDS)
    assert port_of(start(FOUR)) == taken[1]


def test_a_port_on_which_something_listens_is_left_alone(start):
    with socket.create_server(("127.0.0.1", TWO[0])):
        assert port_of(start(TWO)) == TWO[1]
    assert port_of(start(TWO)) == TWO[0]


def test_a_process_that_takes_two_has_two():
    (one, lock), (other, another) = ports.take(), ports.take()
    assert one != other
    lock.release()
    another.release()


def test_no_port_left_is_one_line(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(ports, "PORTS", range(port, port + 1))
        with pytest.raises(ValueError, match=f"all ports from {port} to {port} are taken"):
            ports.take()
