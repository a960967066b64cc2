import sys

import pytest
from pretend_machine import PATIENCE_SECONDS, is_alive, wait_until

WORKER = """
import os, time
from mcgrpo.launch.parents import die_with_parent
die_with_parent()
os.write(1, b"%d\\n" % os.getpid())  # at once: two workers share a file
time.sleep(600)
"""


def test_a_worker_dies_with_its_parent_whatever_that_dies_of(machine):
    worker = [sys.executable, "-c", WORKER]
    parent = f"import subprocess; subprocess.run({worker}, check=True)"
    job = machine.start(1, sys.executable, "-c", parent)
    pid = int(job.devices())
    assert is_alive(pid)
    job.kill()
    assert wait_until(lambda: not is_alive(pid))


def test_a_worker_whose_parent_died_before_it_could_ask_ends(machine):
    orphan = f"{sys.executable} -c '{WORKER}' > orphan.out 2> orphan.err; echo $? > code"
    parent = machine.start(1, "sh", "-c", f"(while kill -0 $$ 2>&-; do sleep 0.01; done; {orphan}) & echo begun")
    assert (parent.devices(), parent.process.wait(PATIENCE_SECONDS)) == ("begun", 0)
    code = machine.folder / "code"
    assert wait_until(lambda: code.exists() and code.read_text())
    assert (code.read_text(), (machine.folder / "orphan.out").read_text()) == ("1\n", "")
    assert f"process {parent.process.pid}, which started this one" in (machine.folder / "orphan.err").read_text()


@pytest.mark.slow
def test_the_workers_of_a_killed_torchrun_die_and_their_devices_are_free(machine):
    (machine.folder / "worker.py").write_text(WORKER)
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "worker.py")
    job = machine.start(2, sys.executable, *launch)
    assert wait_until(lambda: len(job.out.read_text().splitlines()) == 2), job.err.read_text()
    workers = [int(line) for line in job.out.read_text().splitlines()]
    job.kill()
    assert wait_until(lambda: not any(map(is_alive, workers)))
    assert machine.start(2).devices() == "a,b"
