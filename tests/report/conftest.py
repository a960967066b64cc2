from functools import partial

import cells
import pytest
from synthetic import curves_frame, signals_frame


@pytest.fixture
def frame(tmp_path):
    """Cells -> the summary, through its file."""
    return partial(cells.frame, tmp_path)


@pytest.fixture
def signal_frame(tmp_path):
    """Points -> the computed signal, through its file."""
    return partial(signals_frame, tmp_path)


@pytest.fixture
def curve_frame(tmp_path):
    """Points -> the curves, through their file."""
    return partial(curves_frame, tmp_path)
