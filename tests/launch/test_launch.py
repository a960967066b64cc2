import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import mcgrpo
from mcgrpo.launch.__main__ import command
from mcgrpo.launch.environment import package_alone

PYTHON = [sys.executable, "-m"]
TORCHRUN = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--"]


@pytest.mark.parametrize(
    ("gpus", "processes", "expected"),
    [
        (0, 0, [*PYTHON, "mcgrpo.launch.preload", "job", "--x"]),
        (1, 1, [*PYTHON, "mcgrpo.launch.gpus", "1", *PYTHON, "mcgrpo.launch.preload", "job", "--x"]),
        (2, 2, [*PYTHON, "mcgrpo.launch.gpus", "2", *PYTHON, *TORCHRUN, "job", "--x"]),
        (2, 1, [*PYTHON, "mcgrpo.launch.gpus", "2", *PYTHON, "mcgrpo.launch.preload", "job", "--x"]),
        (0, 2, [*PYTHON, *TORCHRUN, "job", "--x"]),
    ],
)
def test_what_is_started(gpus, processes, expected):
    assert command(gpus, processes, ["job", "--x"]) == expected


NODES = [*PYTHON, "mcgrpo.launch.nodes", "2", "2", "2", "job", "--x"]
SRUN = ["srun", "--kill-on-bad-exit=1", "--cpu-bind=none", "--nodes=2", "--ntasks=2"]
SERVER = {"model": "m", "log": "l", "gpus": 1}


def beside(everywhere):
    return [*PYTHON, "mcgrpo.launch.server", json.dumps({**SERVER, "everywhere": everywhere})]


@pytest.mark.parametrize(
    ("nodes", "server", "environment", "expected"),
    [
        (2, None, {"SLURM_JOB_ID": "7"}, [*SRUN, *NODES]),
        (2, None, {"PET_RDZV_ENDPOINT": "host:1"}, NODES),
        (3, SERVER, {"SLURM_JOB_ID": "7"},
         [*PYTHON, "mcgrpo.launch.gpus", "1", *beside(True), *SRUN, "--relative=1", *NODES]),
        (1, SERVER, {"SLURM_JOB_ID": "7"},
         [*PYTHON, "mcgrpo.launch.gpus", "5", *beside(False), *PYTHON, *TORCHRUN[:3], "4", "-m", "--", "job", "--x"]),
    ],
)  # fmt: skip
def test_what_is_started_on_several_machines_and_beside_a_server(nodes, server, environment, expected, monkeypatch):
    monkeypatch.setattr(os, "environ", environment)
    assert command(4, 4, ["job", "--x"], nodes, server) == expected


@pytest.mark.parametrize(
    ("server", "environment", "complaint"),
    [
        (
            None,
            {},
            "nodes=2 machines train together in a SLURM job .* neither SLURM_JOB_ID nor PET_RDZV_ENDPOINT is set",
        ),
        (SERVER, {"PET_RDZV_ENDPOINT": "host:1"}, r"start the vLLM server, too, and name it \(vllm_server_base_url\)"),
    ],
)
def test_machines_that_cannot_train_together_are_refused(server, environment, complaint, monkeypatch):
    monkeypatch.setattr(os, "environ", environment)
    with pytest.raises(ValueError, match=complaint):
        command(4, 4, ["job"], 3 if server else 2, server)


def test_a_server_without_vllm_is_refused():
    done = run("--gpus", "1", "--server", json.dumps(SERVER), "json.tool")
    assert done.returncode == 2 and "vLLM is not installed here" in done.stderr


def run(*arguments, **environment):
    environment = {"PATH": "/usr/bin:/bin", "MCGRPO_PRELOAD": "off", **environment}
    return subprocess.run(
        [*PYTHON, "mcgrpo.launch", *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_a_job_without_gpus_runs_with_its_arguments():
    done = run("--gpus", "0", "--processes", "0", "json.tool", "--help")
    assert done.returncode == 0 and "usage: " in done.stdout, done.stderr


VISIBLE = ["timeit", "-n1", "-r1", "import os; print('visible:', repr(os.environ.get('CUDA_VISIBLE_DEVICES')))"]


@pytest.mark.parametrize("around", [{}, {"CUDA_VISIBLE_DEVICES": "0"}])
def test_a_job_without_gpus_sees_none(around):
    """Else a study with `gpus: 0` would train on the CPU and be evaluated on a GPU, which others may use."""
    done = run("--gpus", "0", *VISIBLE, **around)
    assert "visible: ''" in done.stdout.splitlines(), done.stderr


def test_a_job_gets_its_gpus(tmp_path):
    pretended = {"MCGRPO_DEVICES": "a,b", "MCGRPO_LOCKS": str(tmp_path)}
    done = run("--gpus", "3", "json.tool", **pretended)
    assert done.returncode != 0 and "3 GPUs wanted" in done.stderr
    done = run("--gpus", "2", *VISIBLE, **pretended)
    assert "visible: 'a,b'" in done.stdout.splitlines(), done.stderr


def test_another_environment_imports_the_package_and_nothing_else_from_beside_it(tmp_path):
    venv.create(tmp_path / "other", with_pip=False)
    code = "import mcgrpo.files, importlib.util as util; print(mcgrpo.files.__file__, util.find_spec('torch'))"
    for _ in range(2):  # the link is there already the second time
        alone = package_alone(tmp_path / "package")
        command, environment = [tmp_path / "other/bin/python", "-c", code], {"PYTHONPATH": str(alone)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.stdout == f"{alone}/mcgrpo/files.py None\n", done.stderr
    assert [path.name for path in alone.iterdir()] == ["mcgrpo"]
    assert (alone / "mcgrpo").resolve() == Path(mcgrpo.__file__).parent


def test_a_link_to_a_package_that_has_moved_is_replaced(tmp_path):
    (tmp_path / "mcgrpo").symlink_to(tmp_path / "gone")
    assert (package_alone(tmp_path) / "mcgrpo/__init__.py").is_file()


def test_a_job_sends_no_telemetry_unless_its_user_wants_it():
    """TRL does so in a thread of each training, which may read the environment while accelerate changes it: a crash."""
    told = "from huggingface_hub import constants; print(constants.HF_HUB_DISABLE_TELEMETRY)"
    code = f"from mcgrpo.launch import environment; environment.prepare({{}}); {told}"
    disabling = ("HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK")
    clean = {name: value for name, value in os.environ.items() if name not in disabling}
    for given, disabled in (({}, "True"), ({"HF_HUB_DISABLE_TELEMETRY": "0"}, "False")):
        done = subprocess.run([sys.executable, "-c", code], env=clean | given, capture_output=True, text=True)
        assert done.stdout.strip() == disabled, done.stderr
