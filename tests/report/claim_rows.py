"""Claims as claims.yaml has them, and the cells that they are judged by."""

from dataclasses import fields

import cells
import pandas as pd
import yaml

from mcgrpo.records import Cell
from mcgrpo.report.claim_language import read_claims
from mcgrpo.report.claims import judge


def cell(method="grpo", budget=2, mean=0.5, half=0.01, difference=None, change=None, **other):
    """A `Cell` of five seeds; `mean` with a half-width, `difference` and `change` as (value, half-width)."""
    paired = {"gain": around(difference), "change": around(change)}
    return cells.cell(method, budget, mean, half=half, **paired, **{"setting": "toy", "planned": 5, "seeds": 5} | other)


def around(pair):
    return pair and (pair[0], pair[0] - pair[1], pair[0] + pair[1])


def frame(*cells):
    return pd.DataFrame(list(cells), columns=[field.name for field in fields(Cell)])


def claims_of(tmp_path, *rows):
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": list(rows)}))
    return read_claims(path)


def claim(*comparisons, **other):
    return {"id": "it", "says": "It holds.", "where": "P:1", "comparisons": list(comparisons)} | other


def gain(budget=2, **other):
    return {"terms": [{"method": "mc-grpo", "num_generations": budget, "field": "difference"}]} | other


def ruled(tmp_path, row, *cells, source="ours"):
    (ruling,) = judge(claims_of(tmp_path, row), frame(*cells), source)
    return ruling
