"""The study, its runs and its files: shared by all rules."""

import json
import os
import re
import shlex
import shutil
import sys
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path

from mcgrpo import command_line, shipped, tracking
from mcgrpo.commands import memory
from mcgrpo.launch import calls, environment, gpus, preload
from mcgrpo.report import catalogue
from mcgrpo.study import plan, settings, sources
from mcgrpo.study.check import check
from mcgrpo.study.fingerprint import fingerprint
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.strict_yaml import load
from mcgrpo.sums import sha256

try:
    # Refuses repeated keys: Snakemake would use the last one.
    for file in workflow.configfiles:
        load(file)
    config = settings.without_nulls(config)
    PLANNED = check(config)  # expanded once, here
    if "questions" in config:
        from mcgrpo.analyse.claims import check_questions

        check_questions(config)
except ValueError as error:
    # Not raised: Snakemake would point at this line instead of the study file
    sys.exit(f"error in the study file: {error}")

# What a study file says, as the parameter of a job: in another order of its keys it is the same.
as_json = partial(json.dumps, sort_keys=True)
FILES = StudyFiles(config["study"])
RESULTS = FILES.results
REPORTS = str(Path(config["reports"]))
RUNS = {name: entry.run for name, entry in PLANNED.items()}
TRAINED = [name for name, run in RUNS.items() if run.method != UNTRAINED]
# Methods that are compared train one after the other, so that their times are comparable.
NEIGHBOURS = attrgetter("seed", "setting", "num_generations", "variant", "method")
TURNS = {run.name: turn for turn, run in enumerate(sorted(map(RUNS.get, TRAINED), key=NEIGHBOURS), 1)}
FLIPS = {name: entry.flips for name, entry in PLANNED.items() if entry.flips}
# An engine takes a minute to start on a GPU: a run that is evaluated on several benchmarks has one job for all of them.
# Benchmarks -> the runs.
TOGETHER = {}
for name, entry in PLANNED.items():
    if len(entry.evaluated) > 1:
        TOGETHER.setdefault(tuple(sorted(entry.evaluated)), []).append(name)
GRADES = [RESULTS.grades(name, each) for name, entry in PLANNED.items() for each in entry.evaluated]
FLIP_GRADES = [RESULTS.rollout_grades(name, spec.benchmark) for name, spec in FLIPS.items()]
FLIP_RATES = [RESULTS.flips(name, spec.benchmark) for name, spec in FLIPS.items()]
MEASURED = [*map(RESULTS.run, TRAINED), *GRADES, *FLIP_RATES]
PARTIAL = config.get("partial") in (True, "true")
DATASETS = sources.datasets_of(config, RUNS.values())
GPUS = config.get("gpus", 0)
GENERATION_GPUS = plan.generation_gpus(config)
ON_CLUSTER = workflow.resource_settings.nodes is not None

if not PARTIAL:
    with command_line.errors(settings.StudyError):
        sources.check_folders(
            config,
            models={RUNS[name].model for name in TRAINED if not RESULTS.run(name).exists()},
            datasets=[name for name in DATASETS if not FILES.data(name).exists()],
        )
if workflow.is_main_process and not PARTIAL and "gpu" in workflow.global_resources:
    with command_line.errors(ValueError):  # Snakemake would lower a job's GPUs to what it may use
        gpus.check_given(max(GPUS, GENERATION_GPUS), workflow.global_resources["gpu"].value)

files = environment.prepare(config, workflow.configfiles)
if workflow.is_main_process:
    calls.begin(files, ON_CLUSTER)
    # Snakemake's own message about its lock is to unlock. A call that takes none, such as a dry run, may go on.
    if told := calls.beside(files):
        print(f"warning: {told}; do not unlock", file=sys.stderr)
tracking.use_store(config)

# Trained weights are large: they are removed after evaluation unless the study keeps them.
weights_output = directory if config.get("keep_models") else lambda path: temp(directory(path))


# Not an alternation of all names: Snakemake would compile a long expression for every pattern.
RUN = "[^/]+/[^/]+/G[0-9]+/[^/]+/seed[0-9]+"


wildcard_constraints:
    run=RUN,
    model="|".join(map(re.escape, config["models"])),
    dataset="|".join(map(re.escape, config["datasets"])),
    benchmark="|".join(map(re.escape, config["datasets"])),


def sums(*paths):
    """The SHA-256 of files, which rules have as a param beside their `Path`.

    As inputs they would be compared by path, and a study rerun once the checkout has moved. Snakemake does not compare
    a param that is a `Path`.
    """
    return [sha256(path) for path in paths]


def mtimes(paths):
    """Modification time of each existing path."""
    return [(str(path), path.stat().st_mtime_ns) for path in paths if path.exists()]


def training_priority(wildcards):
    """Trainings start in their turns, after all that can start without them."""
    return -2 * TURNS[wildcards.run]


def evaluation_priority(wildcards):
    """Trained models are evaluated once there are as many as the GPUs of a training take at a time.

    With two GPUs for a training and one for an evaluation, two trainings and then two evaluations start, beside each
    other, and neither GPU waits for an evaluation on the other.
    """
    if wildcards.run not in TURNS:  # an untrained model
        return 0
    return training_priority(wildcards) - 2 * plan.evaluated_at_a_time(config) + 1


def run_of(wildcards):
    """The run of a job."""
    if wildcards.run not in RUNS:
        raise WorkflowError(f"study {config['study']!r} has no run {wildcards.run!r}")
    return RUNS[wildcards.run]


# Snakemake compares folders by their time, which a copy changes: models are `ancient`, beside their checksums.
def initial_model(name, warm=True):
    """The inputs that are a model before training: after its warm start if it has one; a local one in place."""
    spec = config["models"][name]
    warm = warm and "warm_start" in spec
    if "folder" in spec and not warm:
        return {"model": ancient(str(local_folder(name))), "sums": FILES.local_sums(name)}
    folder = FILES.warm_start(name) if warm else FILES.model(name)
    return {"model": ancient(folder), "sums": FILES.sums(folder)}


def local_folder(name):
    """The folder of a model that is used where it lies."""
    return Path(config["models"][name]["folder"]).expanduser()


def final_model(wildcards):
    """The model that generates the completions of a run, and the checksums of one that is trained."""
    run = run_of(wildcards)
    if run.method == UNTRAINED:
        return initial_model(run.model)
    return {"model": ancient(RESULTS.model(run.name)), "sums": RESULTS.model_sums(run.name)}


def task_of(name):
    """The task of a data set."""
    return config["datasets"][name]["task"]


def selection_data(wildcards):
    """The benchmark for selecting a checkpoint, if the run does so."""
    run = run_of(wildcards)
    return FILES.data(settings.first_benchmark(config, run.setting)) if settings.selects_checkpoint(run) else []


def any_of(names):
    """A regular expression of names, by their parts: it is shorter and found faster than one of whole names."""
    rests = {}
    for name in names:
        first, _, rest = name.partition("/")
        rests.setdefault(first, []).append(rest)
    parts = ["/".join((re.escape(first), *([any_of(left)] if any(left) else []))) for first, left in rests.items()]
    return f"(?:{'|'.join(parts)})"


def generation_options(wildcards, *drawn):
    """The options of `mcgrpo.generate` for a run, with the settings of each file that is drawn."""
    run = run_of(wildcards)
    each = [as_json(settings_of(config, run, what)) for settings_of, what in drawn]
    return shlex.join(["--prompt", run.prompt, "--settings", *each, "--seed", str(run.seed)])


def evaluation_options(wildcards, benchmarks):
    """The options of `mcgrpo.generate` for an evaluation of a run on benchmarks."""
    return generation_options(wildcards, *((settings.completion_settings, benchmark) for benchmark in benchmarks))
