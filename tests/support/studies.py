"""The study files of the repository, changes laid over them, and Snakemake."""

import copy

import pytest
import yaml
from forked import ROOT, forked
from snakemake.utils import update_config

from mcgrpo.study.check import StudyError, check
from mcgrpo.study.settings import without_nulls

SNAKEMAKE = (
    "snakemake.cli snakemake.report.html_reporter snakemake.storage jinja2 jsonschema requests referencing known_code"
)
"""What a plan imports, and computes of our code; that takes as long as to plan a small study."""


def load(name):
    return yaml.safe_load((ROOT / "config" / f"{name}.yaml").read_text())


ODD_FOLDER = 'it\'s "a" $(touch RAN) `touch RAN` & é 中文'
"""A name that a shell, Snakemake or LaTeX would read as something else."""


def changed(config, change):
    """A copy of a study with another one laid over it, as the Snakefile does with several config files."""
    config = copy.deepcopy(config)
    update_config(config, copy.deepcopy(change))
    return without_nulls(config)


def refused(config):
    """The one line with which a study is refused."""
    with pytest.raises(StudyError) as caught:
        check(config)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def small(experiments, **keys):
    """The cut-down mini study with these of its experiments, changed so, and with other keys in place of its own."""
    config = changed(load("mini"), load("cut-down"))
    kept = {name: config["experiments"][name] | change for name, change in experiments.items()}
    return config | {"experiments": kept} | keys


def subset(methods):
    """A study of these methods and sign flips alone; what it trains is a part of the whole cut-down study."""
    main = {"methods": methods, "num_generations": [4]}
    return small({"main": main, "sign-flips": {}}, tracking_uri=None)  # else each call imports mlflow


def three_trainings(gpus):
    """A study of three trainings of one step alone."""
    main = {"methods": ["grpo"], "num_generations": [2], "seeds": [0, 1, 2]}
    config = small({"main": main}, gpus=gpus, tracking_uri=None)
    config["training"]["max_steps"] = 1
    config["models"]["toy-qwen3"]["warm_start"]["steps"] = 2
    return config


def snakemake(*words, cwd=ROOT):
    """`snakemake WORDS` in a process forked from one that has imported it."""
    return forked("snakemake", *words, imports=SNAKEMAKE, cwd=cwd)


def planned(log):
    """Rule -> number of jobs, as Snakemake says before it starts them."""
    if "Job stats:" not in log:
        return {}
    lines = log.split("Job stats:")[1].split("total")[0].splitlines()[3:]
    return {row.split()[0]: int(row.split()[1]) for row in lines if row.strip()}
