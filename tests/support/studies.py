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


def subset(methods):
    """The cut-down mini study with these methods and sign flips alone; what it trains is a part of the whole."""
    config = changed(load("mini"), load("cut-down"))
    main = {**config["experiments"]["main"], "methods": methods, "num_generations": [4]}
    return {**config, "experiments": {"main": main, "sign-flips": config["experiments"]["sign-flips"]}}


def planned(log):
    """Rule -> number of jobs, as Snakemake says before it starts them."""
    if "Job stats:" not in log:
        return {}
    lines = log.split("Job stats:")[1].split("total")[0].splitlines()[3:]
    return {row.split()[0]: int(row.split()[1]) for row in lines if row.strip()}
