"""A parent run for each cell of a study: the mean and the interval over its seeds, from `summary.csv`."""

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcgrpo.study.methods import METHODS, UNTRAINED, Method
from mcgrpo.study.variants import DEFAULT
from mcgrpo.tracking import contents
from mcgrpo.tracking.store import Store, metric_name

Rows = list[dict[str, str]]
HEADLINE = ("greedy", "avg@")
"""How the measures begin that are shown: the others of an evaluation are rates, or graded otherwise."""


def read_cells(summary: Path) -> dict[str, Rows]:
    """The rows of each cell that has any numbers, by its name."""
    found: dict[str, Rows] = defaultdict(list)
    with summary.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["mean"]:
                found[contents.cell_name(row)].append(row)
    return found


def label(row: Mapping[str, str]) -> str:
    """What a person calls a cell."""
    method = METHODS[row["method"]].label if row["method"] in METHODS else row["method"]
    trained = [method, f"G={row['num_generations']}"] if row["method"] != UNTRAINED else ["untrained"]
    return " ".join([*trained, row["setting"], *([row["variant"]] if row["variant"] != DEFAULT else [])])


def metrics_of(rows: Rows) -> dict[str, float]:
    """Fractions as `accuracy/BENCHMARK/MEASURE` with `_low` and `_high`, and the paired difference to the baseline.

    Out of distribution they begin with `ood`, and so stand below in MLflow, which sorts by name. `seeds` and `problems`
    are what they are over; `train/MEASURE` are means over seeds.
    """
    found: dict[str, float] = {}
    for row in rows:
        if row["role"] == "train":
            found[f"train/{row['measure']}"] = float(row["mean"])
        elif row["role"] != "flips" and row["measure"].startswith(HEADLINE):
            place, ood = f"{row['benchmark']}/{row['measure']}", "" if row["role"] == "in" else "ood-"
            found |= _with_bounds(contents.score_name(row), row, ("mean", "low", "high"))
            found |= _with_bounds(f"{ood}difference/{place}", row, ("difference", "difference_low", "difference_high"))
            found[f"problems/{row['benchmark']}"] = float(row["n"])
    return found | {"seeds": max(float(row["seeds"]) for row in rows)}


def _with_bounds(name: str, row: Mapping[str, str], columns: tuple[str, str, str]) -> dict[str, float]:
    pairs = zip((name, f"{name}_low", f"{name}_high"), columns, strict=True)
    return {each: float(row[column]) for each, column in pairs if row[column]}


def write_cells(store: Store, summary: Path, trainings: Mapping[str, Any]) -> dict[str, str]:
    """Make each cell's run, or leave it where nothing has changed, and put its seeds below it.

    Args:
        trainings: the MLflow runs of the study's trainings, by run name.

    Returns:
        Cell name -> MLflow run id.
    """
    there = {run.data.tags.get(contents.CELL): run for run in store.find(contents.KIND, "cell")}
    stamp, ids = summary.stat().st_mtime, {}
    for name, rows in read_cells(summary).items():
        ids[name] = _write_cell(store, name, rows, stamp, there.pop(name, None))
    for gone in there.values():
        store.client.delete_run(gone.info.run_id)
    for run in trainings.values():
        parent = ids.get(run.data.tags.get(contents.CELL))
        if parent and run.data.tags.get(contents.PARENT) != parent:
            store.client.set_tag(run.info.run_id, contents.PARENT, parent)
    return ids


def _write_cell(store: Store, name: str, rows: Rows, stamp: float, there: Any | None) -> str:
    values, row = metrics_of(rows), rows[0]
    digest = hashlib.sha256(json.dumps([label(row), values], sort_keys=True).encode()).hexdigest()[:16]
    if there is not None and there.data.tags.get(contents.DIGEST) == digest:
        return there.info.run_id
    if there is not None and set(there.data.metrics) - {metric_name(key) for key in values}:
        store.client.delete_run(there.info.run_id)  # a run cannot lose a metric
        there = None
    tags = {"setting": row["setting"], "method": row["method"], "G": row["num_generations"], "variant": row["variant"]}
    if row["method"] in METHODS:
        tags["estimator"] = METHODS[row["method"]].estimator
    known = {contents.KIND: "cell", contents.CELL: name, contents.NOTE: _note(row, values)}
    if there is None:
        start = contents.milliseconds(stamp)
        run_id = store.create(label(row), start, {**tags, **known}).info.run_id
        store.describe(run_id, tags, {})
    else:
        run_id = there.info.run_id
        store.client.update_run(run_id, name=label(row))
    store.log(run_id, [{"step": 0, "time": stamp, **values}])
    store.describe(run_id, {}, known | {contents.DIGEST: digest})  # last: what was cut off before is done again
    store.client.set_terminated(run_id, "FINISHED", contents.milliseconds(stamp))
    return run_id


def _note(row: Mapping[str, str], values: Mapping[str, float]) -> str:
    baseline = f" Differences are paired, to {METHODS[row['baseline']].label}." if row["baseline"] else ""
    return f"Mean and 95% interval (`_low`, `_high`) over {values['seeds']:.0f} seeds and the problems.{baseline}"


def comparisons(cells: Mapping[str, Rows], ids: Mapping[str, str], experiment: str) -> list[str]:
    """For each setting a line of Markdown: links that compare the median with the mean, by G and loss."""
    links: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, (row, *_) in cells.items():
        method = METHODS.get(row["method"])
        if row["variant"] != DEFAULT or not (method and method.baseline) or not is_median(method):
            continue
        other = contents.cell_name({**row, "method": method.baseline})
        if other in ids:
            both = json.dumps([ids[other], ids[name]], separators=(",", ":")).replace('"', "%22")
            place = f"#/compare-runs?runs={both}&experiments=[%22{experiment}%22]"
            links[row["setting"]][int(row["num_generations"])].append(f"[{METHODS[method.baseline].label}]({place})")
    lines = []
    for setting, by_g in links.items():
        parts = [f"G={g} {' '.join(found)}" for g, found in sorted(by_g.items())]
        lines.append(f"Median against mean on {setting}: {', '.join(parts)}")
    return lines


def is_median(method: Method) -> bool:
    """Whether it centres rewards on their median."""
    return method.estimator.startswith("median")
