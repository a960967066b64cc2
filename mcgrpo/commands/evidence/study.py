"""The study of an archive, read as data: checked against the schema before anything else is read by it.

Nothing of it runs, names a module to import or chooses a path: Snakemake does not read it, an estimator of somebody's
own is a name, and every path is made of names that the schema allows.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path

from mcgrpo.study.check import StudyError, check_form, leave_out, load
from mcgrpo.study.lock import lock_file, pin, read_lock
from mcgrpo.study.plan import Config, variants
from mcgrpo.study.read import schema

MOST_BYTES, MOST_RUNS = 500_000, 100_000


def read_config(path: Path) -> Config:
    """The study as it was run.

    Raises:
        StudyError: naming what is not as in a study that this code would run.
    """
    if path.stat().st_size > MOST_BYTES:
        raise StudyError(f"larger than {MOST_BYTES:,} bytes")
    config = json.loads(path.read_text(encoding="utf-8"))
    check_form(config, schema())
    if (count := sum(_grid(config, experiment) for experiment in config["experiments"].values())) > MOST_RUNS:
        raise StudyError(f"{count:,} runs, more than {MOST_RUNS:,}")
    return config


def _grid(config: Config, experiment: Config) -> int:
    lists = (experiment["settings"], variants(experiment), experiment.get("methods", []),
             experiment.get("num_generations", []), experiment.get("seeds", config["seeds"]))  # fmt: skip
    return math.prod(map(len, lists))


def layer_differences(layers: Sequence[Path], config: Config) -> list[str]:
    """The keys in which a study is not what its files, merged and pinned, amount to.

    Raises:
        StudyError: for a study file that is no plain data.
    """
    merged: Config = {}
    for file in layers:
        merged = overlaid(merged, load(file))
    for file in reversed(layers):
        pin(merged, read_lock(lock_file(file)))
    leave_out(merged)
    merged = json.loads(json.dumps(merged))
    return [key for key in {**merged, **config} if merged.get(key) != config.get(key)]


def overlaid(below: Config, above: Config) -> Config:
    """One study file over another, as Snakemake's `--configfile` lays them: mappings key by key, all else whole."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = overlaid(under if isinstance(under, dict) else {}, value) if isinstance(value, dict) else value
    return merged
