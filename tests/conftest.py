"""What all tests share: one torch thread, no hub, hypothesis without deadlines (shared machines are slow at times)."""

import gc
import os
import shutil
import signal
import sqlite3
import subprocess

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("DISABLE_MLFLOW_INTEGRATION", "TRUE")  # as for a study's jobs
os.environ.pop("MLFLOW_TRACKING_URI", None)

import pytest
from filelock import FileLock
from hypothesis import settings

# As at a terminal, in all that tests start, also while they are imported: what a script starts in the background
# inherits that SIGINT is ignored, and would wait for an end by Ctrl-C for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("project", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=25)  # for `make test-fast`; by default 100
settings.load_profile("project")

LONGEST = (
    "workflow/test_whole_study.py",
    "grade/",
    "workflow/test_killed_study.py",
    "tracking/",
    "workflow/test_deployed.py",
    "train/test_attempts.py",
    "workflow/test_planning.py",
    "workflow/test_gpu_limit.py",
    "workflow/test_gpu_small.py",
    "project/test_gpu_check.py",
    "trainer/test_processes.py",
    "workflow/test_user_defined.py",
    "workflow/test_calls.py",
    "workflow/test_rehearsal.py",
    "commands/test_evidence.py",
    "trainer/test_compact.py",
    "trainer/test_trainer.py",
    "trainer/test_equations.py",
)
"""Files and folders by their time: two processes that begin with the longest end at about the same time."""


def pytest_collection_modifyitems(items):
    """Run the longest first, the others in their order."""

    def place(item):
        found = (n for n, name in enumerate(LONGEST) if item.nodeid.startswith(f"tests/{name}"))
        return next(found, len(LONGEST))

    items.sort(key=place)


def pytest_collectstart():
    """Imports make no garbage: to look for it takes a third of their time."""
    gc.disable()


def pytest_collection_finish():
    leave_out_of_collections()
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def imports_of_a_file():
    yield
    leave_out_of_collections()


def leave_out_of_collections():
    """Every training collects garbage; to look through all imported modules takes longer than three of its steps."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Name, maker -> the folder that the maker has filled, once for all processes of the session."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made_once(name, make):
        folder, done = base / name, base / f"{name}.done"
        with FileLock(base / f"{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made_once


@pytest.fixture
def small_disk(tmp_path):
    """A disk of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def machine(tmp_path):
    """Two pretend devices, and jobs on them that end with the test."""
    from pretend_machine import Machine

    machine = Machine(tmp_path)
    yield machine
    for job in machine.jobs:
        job.end()


@pytest.fixture
def uri(made_once, tmp_path):
    """An MLflow store of its own for each test, copied: to make its tables takes MLflow seconds."""

    def make(folder):
        from mlflow import MlflowClient

        MlflowClient(f"sqlite:///{folder}/mlflow.db").create_experiment("another")

    store = made_once("store", make) / "mlflow.db"
    with sqlite3.connect(store) as source, sqlite3.connect(tmp_path / "mlflow.db") as copy:
        source.backup(copy)
    return f"sqlite:///{tmp_path}/mlflow.db"
