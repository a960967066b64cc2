"""A parent run for each cell of a study: the mean and the interval over its seeds, from `summary.csv`."""

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mcgrpo.records import cell_name
from mcgrpo.study.methods import METHODS, UNTRAINED, is_median
from mcgrpo.study.variants import DEFAULT
from mcgrpo.tracking import contents
from mcgrpo.tracking.store import Store, metric_name

Rows = list[dict[str, str]]
HEADLINE = ("greedy", "avg@")
"""How the names of the accuracies begin; the other measures of an evaluation are rates, or graded otherwise."""


def read_cells(summary: Path) -> dict[str, Rows]:
    """The rows of each cell that has any numbers, by its name."""
    cells: dict[str, Rows] = defaultdict(list)
    with summary.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["mean"]:
                cells[cell_name(row)].append(row)
    return cells


def label(row: Mapping[str, str]) -> str:
    """The name of a cell's run, such as `MC-GRPO G=4 toy`."""
    method = METHODS[row["method"]].label if row["method"] in METHODS else row["method"]
    trained = f"{method} G={row['num_generations']}" if row["method"] != UNTRAINED else "untrained"
    return f"{trained} {row['setting']} {row['variant']}".removesuffix(f" {DEFAULT}")


def metrics_of(rows: Rows) -> dict[str, float]:
    """`accuracy/BENCHMARK/MEASURE` as a fraction with `_low` and `_high`, and the paired difference to the baseline.

    Out of distribution names begin with `ood`, and so stand below in MLflow, which sorts by name. `seeds` and
    `problems` are what these are over; `train/MEASURE` are means over seeds.
    """
    metrics: dict[str, float] = {}
    for row in rows:
        if row["role"] == "train":
            metrics[f"train/{row['measure']}"] = float(row["mean"])
        elif row["role"] != "flips" and row["measure"].startswith(HEADLINE):
            ood = "" if row["role"] == "in" else "ood-"
            difference = f"{ood}difference/{row['benchmark']}/{row['measure']}"
            for name, value, bound in (
                (contents.score_name(row), "mean", ""),
                (difference, "difference", "difference_"),
            ):
                columns = {name: value, f"{name}_low": f"{bound}low", f"{name}_high": f"{bound}high"}
                metrics |= {each: float(row[column]) for each, column in columns.items() if row[column]}
            metrics[f"problems/{row['benchmark']}"] = float(row["n"])
    return metrics | {"seeds": max(float(row["seeds"]) for row in rows)}


def write_cells(store: Store, summary: Path, trainings: Iterable[Any]) -> dict[str, str]:
    """Make each cell's run, or leave it where nothing has changed, and put its seeds below it.

    Args:
        trainings: the MLflow runs of the study's trainings.

    Returns:
        Cell name -> MLflow run id.
    """
    existing = {run.data.tags.get(contents.CELL): run for run in store.find(contents.KIND, "cell")}
    stamp = summary.stat().st_mtime
    ids = {name: _write(store, name, rows, stamp, existing.pop(name, None))
           for name, rows in read_cells(summary).items()}  # fmt: skip
    for gone in existing.values():
        store.client.delete_run(gone.info.run_id)
    for run in trainings:
        parent = ids.get(run.data.tags.get(contents.CELL))
        if parent and run.data.tags.get(contents.PARENT) != parent:
            store.client.set_tag(run.info.run_id, contents.PARENT, parent)
    return ids


def _write(store: Store, name: str, rows: Rows, stamp: float, existing: Any | None) -> str:
    values, row = metrics_of(rows), rows[0]
    digest = hashlib.sha256(json.dumps([label(row), values], sort_keys=True).encode()).hexdigest()[:16]
    if existing and existing.data.tags.get(contents.DIGEST) == digest:
        return existing.info.run_id
    if existing and set(existing.data.metrics) - set(map(metric_name, values)):
        store.client.delete_run(existing.info.run_id)  # a run cannot lose a metric
        existing = None
    params = {key: row[key] for key in ("setting", "method", "variant")} | {"G": row["num_generations"]}
    if row["method"] in METHODS:
        params["estimator"] = METHODS[row["method"]].estimator
    known = {contents.KIND: "cell", contents.CELL: name, contents.NOTE: _note(row, values)}
    if existing:
        run_id = existing.info.run_id
        store.client.update_run(run_id, name=label(row))
    else:
        run_id = store.create(label(row), contents.milliseconds(stamp), {**params, **known})
        store.describe(run_id, params, {})
    store.log(run_id, [{"step": 0, "time": stamp, **values}])
    store.describe(run_id, {}, known | {contents.DIGEST: digest})  # last: an interrupted call is repeated
    store.client.set_terminated(run_id, "FINISHED", contents.milliseconds(stamp))
    return run_id


def _note(row: Mapping[str, str], values: Mapping[str, float]) -> str:
    baseline = f" Differences are paired, to {METHODS[row['baseline']].label}." if row["baseline"] else ""
    seeds = "" if values["seeds"] == 1 else f"{values['seeds']:.0f} seeds and "
    return f"Mean and 95% interval (`_low`, `_high`) over {seeds}the problems.{baseline}"


def comparisons(cells: Mapping[str, Rows], ids: Mapping[str, str], experiment: str) -> list[str]:
    """A line of Markdown for each setting: links that compare the median with the mean, by G and loss."""
    links: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, (row, *_) in cells.items():
        baseline = METHODS[row["method"]].baseline if row["method"] in METHODS else None
        other = cell_name({**row, "method": baseline})
        if row["variant"] == DEFAULT and is_median(row["method"]) and other in ids:
            query = f"#/compare-runs?runs=[%22{ids[other]}%22,%22{ids[name]}%22]&experiments=[%22{experiment}%22]"
            links[row["setting"]][int(row["num_generations"])].append(f"[{METHODS[baseline].label}]({query})")
    return [
        f"Median against mean on {setting}: {', '.join(f'G={g} ' + ' '.join(each) for g, each in sorted(by_g.items()))}"
        for setting, by_g in links.items()
    ]
