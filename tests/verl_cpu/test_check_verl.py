"""`mcgrpo check-verl` with a real verl."""

import os
import subprocess
import sys


def check(**environment):
    command = [sys.executable, "-m", "mcgrpo.cli", "check-verl"]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_verl_has_loaded_the_estimators_and_the_trainers():
    done = check()
    assert done.returncode == 0, done.stderr
    assert "mcgrpo:median-mad" in done.stdout and "mcgrpo_sync" in done.stdout


def test_a_plugin_that_verl_leaves_out_is_named():
    done = check(VERL_USE_EXTERNAL_PLUGINS="mcgrpo")
    assert done.returncode == 1
    assert "has not loaded its plugin mcgrpo_trainers: VERL_USE_EXTERNAL_PLUGINS=mcgrpo leaves it out" in done.stderr


def test_the_reason_of_a_plugin_that_cannot_be_loaded_is_told(tmp_path):
    (tmp_path / "transfer_queue.py").write_text("raise ImportError('no TransferQueue here')")
    done = check(PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("plugin mcgrpo_trainers: ImportError: no TransferQueue here")
