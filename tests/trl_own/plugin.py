"""Puts our trainer in the place of TRL's in TRL's own tests: `-p trl_own.plugin`, with the trainer in `TRL_OWN`."""

import inspect
import os
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from accelerate.utils import imports

from mcgrpo import MCGRPOConfig, MCGRPOTrainer

FIXED_ROWS = "def fake_generate"
"""In the source of a test that replaces `generate` by rows of its own, G of them."""
COUNTED = "expected_first_generation_batch"
"""In the source of the test that knows which prompts there are; a few are enough for the others, and much faster."""


@dataclass
class MeanConfig(MCGRPOConfig):
    """`mean-std`, unless `scale_rewards` asks for another of TRL's."""

    def __post_init__(self):
        if self.scale_rewards in ("group", True):
            self.estimator = "mean-std"
        super().__post_init__()


@dataclass
class MedianOfFixedRows(MCGRPOConfig):
    """One smaller: with the extra rollout, G rows are drawn of each prompt, as many as the test has."""

    def __post_init__(self):
        size = self.num_generations
        self.num_generations = size - 1
        self.per_device_train_batch_size = self.per_device_train_batch_size // size * self.num_generations
        super().__post_init__()


CONFIGS = {"mean-std": MeanConfig, "median-mad": MCGRPOConfig}
TRAINER = os.environ.get("TRL_OWN", "trl")


def is_available(name: str):
    """A function that a test suite of another version asks for in TRL, `is_..._available`."""
    if not (name.startswith("is_") and name.endswith("_available")):
        raise AttributeError(name)
    return lambda: find_spec(name.removeprefix("is_").removesuffix("_available")) is not None


def pytest_configure(config):
    imports._is_package_available = cache(imports._is_package_available)  # looked up dozens of times by each trainer
    import_module("trl.import_utils").__getattr__ = is_available  # trl replaces itself in sys.modules


@pytest.fixture(autouse=True)
def material(request, monkeypatch):
    """Models and data are found by their names in the working directory."""
    monkeypatch.chdir("all" if COUNTED in inspect.getsource(request.function) else "few")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", Path.cwd() / "cache")  # it goes by the same names


@pytest.fixture(autouse=True)
def our_trainer(request, monkeypatch):
    """The names of the test's module are ours for its duration."""
    if TRAINER == "trl":
        return
    config = CONFIGS[TRAINER]
    if TRAINER == "median-mad" and FIXED_ROWS in inspect.getsource(request.function):
        config = MedianOfFixedRows
    monkeypatch.setattr(request.module, "GRPOConfig", config)
    monkeypatch.setattr(request.module, "GRPOTrainer", MCGRPOTrainer)
