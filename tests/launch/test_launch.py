"""How a job is started: real processes, on pretended GPUs."""

import os
import subprocess
import sys

import pytest

PYTHON = [sys.executable, "-m"]


def run(*arguments, **environment):
    environment = {"PATH": "/usr/bin:/bin", **environment}
    command = [*PYTHON, "mcgrpo.launch", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


VISIBLE = ["timeit", "-n1", "-r1", "import os; print('visible:', repr(os.environ.get('CUDA_VISIBLE_DEVICES')))"]


@pytest.mark.parametrize("around", [{}, {"CUDA_VISIBLE_DEVICES": "0"}])
def test_a_job_without_gpus_sees_none(around):
    """Else a study with `gpus: 0` would train on the CPU and be evaluated on a GPU, which others may use."""
    done = run("--gpus", "0", *VISIBLE, **around)
    assert "visible: ''" in done.stdout.splitlines(), done.stderr


@pytest.mark.slow
def test_torchrun_starts_a_process_for_each_gpu(tmp_path):
    """Each writes a file: torchrun runs `python -u`, whose `print` writes word by word, between another's words."""
    code = f"import os; open('{tmp_path}/rank' + os.environ['RANK'], 'w').write(os.environ['CUDA_VISIBLE_DEVICES'])"
    where = {"MCGRPO_DEVICES": "a,b", "MCGRPO_LOCKS": str(tmp_path / "locks")}
    done = run("--gpus", "2", "--processes", "2", "timeit", "-n1", "-r1", code, **where)
    seen = {path.name: path.read_text() for path in tmp_path.glob("rank*")}
    assert seen == {"rank0": "a,b", "rank1": "a,b"}, done.stderr


def test_a_job_sends_no_telemetry_unless_its_user_wants_it():
    """TRL does so in a thread of each training, which may read the environment while accelerate changes it: a crash."""
    told = "from huggingface_hub import constants; print(constants.HF_HUB_DISABLE_TELEMETRY)"
    code = f"from mcgrpo.launch import environment; environment.prepare({{}}); {told}"
    disabling = ("HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK")
    clean = {name: value for name, value in os.environ.items() if name not in disabling}
    for given, disabled in (({}, "True"), ({"HF_HUB_DISABLE_TELEMETRY": "0"}, "False")):
        done = subprocess.run([sys.executable, "-c", code], env=clean | given, capture_output=True, text=True)
        assert done.stdout.strip() == disabled, done.stderr
