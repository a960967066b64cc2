"""The study, its runs, and where things are: shared by all rules."""

import json
import re
import sys
from pathlib import Path

import yaml

from mcgrpo import environment, lock, study
from mcgrpo.closure import fingerprint
from mcgrpo.methods import UNTRAINED
from mcgrpo.records import PROTOCOL_SUFFIXES

try:
    study.check(config, yaml.safe_load(Path(workflow.source_path("../schemas/study.schema.yaml")).read_text()))
    for file in reversed(workflow.configfiles):  # what is on top is pinned by its own lock
        lock.pin(config, lock.read_lock(lock.lock_file(file)))
except study.StudyError as error:
    # Not raised: Snakemake would point at this line, and the culprit is the study file
    sys.exit(f"error in the study file: {error}")

RESULTS = f"results/{config['study']}"
REPORTS = config["reports"]
LOGS = f"logs/{config['study']}"
RUNS = {run.name: run for run in study.runs(config)}
TRAINED = [name for name, run in RUNS.items() if run.method != UNTRAINED]
GRADES = [
    f"{RESULTS}/grades/{name}/{benchmark}{PROTOCOL_SUFFIXES[protocol]}.jsonl"
    for name, run in RUNS.items()
    for benchmark in study.benchmarks(config, run.setting)
    for protocol in study.protocols(config)
]
DATASETS = sorted(
    {run.dataset for run in RUNS.values()}
    | {benchmark for run in RUNS.values() for benchmark in study.benchmarks(config, run.setting)}
)
AUDITS = [f"resources/data/{config['study']}/{dataset}.audit.json" for dataset in DATASETS]

environment.prepare(config)

# Trained weights are large; once evaluated they are removed unless the study keeps them.
weights_output = directory if config.get("keep_models") else lambda path: temp(directory(path))


wildcard_constraints:
    study=re.escape(config["study"]),
    run="|".join(map(re.escape, RUNS)),
    model="|".join(map(re.escape, config["models"])),
    dataset="|".join(map(re.escape, config["datasets"])),
    benchmark="|".join(map(re.escape, config["datasets"])),
    protocol="|".join(map(re.escape, PROTOCOL_SUFFIXES.values())),


def run_of(wildcards):
    """The run that a job is about."""
    return RUNS[wildcards.run]


def model_folder(name):
    """Where a model is: a local folder stays where it is, all others are put under resources."""
    if "folder" in config["models"][name]:
        return str(Path(config["models"][name]["folder"]).expanduser())
    return f"resources/models/{config['study']}/{name}"


def start_model(wildcards):
    """The model that a run's training starts from."""
    return model_folder(run_of(wildcards).model)


def final_model(wildcards):
    """The model that a run's completions are drawn from."""
    if run_of(wildcards).method == UNTRAINED:
        return start_model(wildcards)
    return f"{RESULTS}/models/{wildcards.run}"


def train_data(wildcards):
    """The data set that a run is trained on."""
    return f"resources/data/{config['study']}/{run_of(wildcards).dataset}.jsonl"


def evaluation_settings(wildcards):
    """How completions are drawn for a run: the study's `evaluation`, and the setting's chat template."""
    setting = config["settings"][run_of(wildcards).setting]
    training = {**config["training"], **setting.get("training", {})}
    return {**config["evaluation"], "chat_template_kwargs": training.get("chat_template_kwargs", {})}
