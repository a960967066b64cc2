"""One training on two machines that are both this one: two of torchrun's agents, which meet as on two machines.

What starts them on the machines of a real SLURM is in tests/slurm.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from learning_trainings import TWO_PROCESSES, arguments, learned, run, timeless, weights
from pretend_machine import wait_until
from training_jobs import changed, job, outcome, steps

from mcgrpo.launch.server import free_port
from mcgrpo.train import attempts

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
RUN = changed(max_steps=6, num_iterations=2, per_device_train_batch_size=8, lr_scheduler_type="cosine", beta=0.04)


def start(made, folder, environment):
    """One machine's part of a training on two pretend GPUs, as a study's rule starts it; its log."""
    launch = ["-m", "mcgrpo.launch", "--gpus", "2", "--processes", "2", "--nodes", "2", "--server", "null"]
    command = [sys.executable, *launch, *arguments(made), "--gpus", "2"]
    pretended = {"MCGRPO_DEVICES": "a,b", "MCGRPO_LOCKS": str(folder / "locks")}
    pretended["PYTHONPATH"] = f"{ROOT}:{ROOT / 'tests/support'}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PET_"))}
    log = folder / f"{len(list(folder.glob('*.log')))}.log"
    with log.open("w") as file:
        return subprocess.Popen(command, env=clean | pretended | environment, stdout=file, stderr=file), log


def ended(machines):
    """Exit codes and logs."""
    return [process.wait(300) for process, _ in machines], [log.read_text() for _, log in machines]


def on_two(made, folder):
    """Both machines' parts, started."""
    meeting = {"PET_RDZV_ENDPOINT": f"localhost:{free_port()}"}
    return [start(made, folder, meeting) for _ in range(2)]


@pytest.fixture(scope="module")
def one_machine(inputs, tmp_path_factory):
    """The training by two processes of one machine."""
    made = job(inputs, tmp_path_factory.mktemp("one"), RUN, save_steps=2)
    done = run(made, launcher=TWO_PROCESSES)
    assert done.returncode == 0 and learned(made), done.stderr
    return made


def same_end(one, other):
    return weights(one) == weights(other) and timeless(steps(one.output)) == timeless(steps(other.output))


def test_two_machines_train_as_two_processes_of_one_to_the_bit_though_one_died(inputs, tmp_path, one_machine):
    made = job(inputs, tmp_path, RUN, save_steps=2)
    machines = on_two(made, tmp_path)
    complete = made.checkpoints / "checkpoint-2" / attempts.COMPLETE
    assert wait_until(lambda: complete.is_file() or machines[0][0].poll() is not None)
    machines[0][0].kill()
    codes, logs = ended(machines)
    assert codes[0] == -9 and codes[1] > 0, logs
    codes, logs = ended(on_two(made, tmp_path))
    assert codes == [0, 0] and any("going on from" in log for log in logs), logs
    assert all("takes a" in log or "takes b" in log for log in logs)  # one GPU each
    assert outcome(made.output)["status"] == "finished" and outcome(made.output)["gpus"] == 2
    assert same_end(one_machine, made)
