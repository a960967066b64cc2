"""The study of an archive, read as data: checked against the schema before anything else is read by it.

Nothing of it runs, names a module to import or chooses a path: Snakemake does not read it, an estimator of somebody's
own is a name, and every path is made of names that the schema allows.
"""

import json
import math
from pathlib import Path
from typing import Any

from mcgrpo.commands.evidence.contents import STUDY
from mcgrpo.commands.evidence.limits import Limits, option
from mcgrpo.commands.evidence.manifest import Manifest
from mcgrpo.study.check import StudyError, check_form, leave_out_experiments, load
from mcgrpo.study.lock import lock_file, pin, read_lock
from mcgrpo.study.plan import Config, as_json, variants
from mcgrpo.study.read import schema

STUDY_BYTES, VALUES, ITEMS = 500_000, 20_000, 1_000
"""Bounds of study.json: bytes, keys and values, items of a list."""
SUBSET_SIZE, SUBSAMPLES = 64, 10_000
"""Largest of a study whose sign-flip rates are computed again; the paper's are 8 and 20."""


def read_config(folder: Path, manifest: Manifest, limits: Limits) -> Config:
    """The study as it was run.

    Raises:
        StudyError: naming what is not as in a study that this code would run.
    """
    try:
        return _read_config(folder, manifest, limits)
    except (RecursionError, json.JSONDecodeError) as error:
        raise StudyError(f"{STUDY}: no JSON that can be read: {error}") from None
    except StudyError as error:
        raise StudyError(f"{STUDY}: {error}") from None


def _read_config(folder: Path, manifest: Manifest, limits: Limits) -> Config:
    path = folder / STUDY
    if path.stat().st_size > STUDY_BYTES:
        raise StudyError(f"larger than {STUDY_BYTES:,} bytes")
    text = path.read_text(encoding="utf-8")
    config = json.loads(text)
    _check_size(config)
    if json.dumps(config, indent=2) + "\n" != text:
        raise StudyError("not as `mcgrpo bundle` writes it (a key that is there twice, or its layout)")
    if not isinstance(config, dict):
        raise StudyError("holds no keys with values")
    check_form(config, schema())
    if (config["study"], f"{config['study']}-evidence") != (manifest.study, folder.name):
        raise StudyError(f"study {config['study']!r}; the manifest is of {manifest.study!r}, in {folder.name}")
    _check_work(config, limits)
    return config


def read_plan(config: Config) -> dict[str, Any]:
    """What the study plans, made here; the archive's plan.json is not read for it."""
    return json.loads(json.dumps(as_json(config)))


def layer_differences(folder: Path, manifest: Manifest, config: Config) -> list[str]:
    """The keys in which study.json is not what the study files, merged and pinned, amount to.

    Raises:
        StudyError: for a study file that is no plain data.
    """
    layers = [folder / name for name in manifest.study_files]
    merged: Config = {}
    for file in layers:
        merged = overlaid(merged, load(file))
    for file in reversed(layers):
        pin(merged, read_lock(lock_file(file)))
    leave_out_experiments(merged)
    merged = json.loads(json.dumps(merged))
    return [key for key in {**merged, **config} if merged.get(key) != config.get(key)]


def overlaid(below: Config, above: Config) -> Config:
    """One study file over another, as Snakemake's `--configfile` lays them: mappings key by key, all else whole."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = overlaid(under if isinstance(under, dict) else {}, value) if isinstance(value, dict) else value
    return merged


def _check_size(content: Any) -> None:
    count, waiting = 0, [content]
    while waiting:
        value = waiting.pop()
        count += 1
        if isinstance(value, list) and len(value) > ITEMS:
            raise StudyError(f"a list of {len(value):,} items, the bound is {ITEMS:,}")
        if count > VALUES:
            raise StudyError(f"more than {VALUES:,} keys and values")
        waiting += value if isinstance(value, list) else value.values() if isinstance(value, dict) else []


def _check_work(config: Config, limits: Limits) -> None:
    """Refuse a study whose plan alone is more than an archive can hold, or whose sign-flip rates would take days."""
    count = 0
    for name, experiment in config["experiments"].items():
        grid = (variants(experiment), experiment.get("methods", []), experiment.get("num_generations", []),
                experiment.get("seeds", config["seeds"]))  # fmt: skip
        for setting in experiment["settings"]:
            evaluations = sum(map(len, config["settings"][setting]["benchmarks"].values()))
            count += (1 + math.prod(map(len, grid))) * (1 + evaluations)
        flips = experiment.get("sign_flips", {"subset_sizes": [2], "subsamples": 1})
        if max(flips["subset_sizes"]) > SUBSET_SIZE or flips["subsamples"] > SUBSAMPLES:
            raise StudyError(
                f"experiments.{name}.sign_flips: subsets of more than {SUBSET_SIZE}, or more than {SUBSAMPLES:,} of "
                "them, are not computed again"
            )
    if count > limits.files:
        raise StudyError(f"{count:,} runs and evaluations, the bound is {limits.files:,} ({option('files')})")
