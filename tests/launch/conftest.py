"""Servers of `mcgrpo.launch.preload` end with their test."""

import shutil
import tempfile
from pathlib import Path

import pytest
from preload_place import Place


@pytest.fixture
def place(tmp_path):
    sockets = Path(tempfile.mkdtemp(prefix="pre"))  # a socket's path must be short
    place = Place(tmp_path, sockets)
    yield place
    if sockets.is_dir():
        place.run("--stop")
        shutil.rmtree(sockets, ignore_errors=True)  # servers that end remove theirs
