"""The study files of the repository, and changes laid over them."""

import copy
from pathlib import Path

import yaml
from snakemake.utils import update_config

ROOT = Path(__file__).parents[2]


def load(name):
    return yaml.safe_load((ROOT / "config" / f"{name}.yaml").read_text())


def changed(config, change):
    """A copy of a study with another one laid over it, as Snakemake does with several config files."""
    config = copy.deepcopy(config)
    update_config(config, copy.deepcopy(change))
    return config
