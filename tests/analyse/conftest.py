from dataclasses import asdict
from itertools import product

import pytest
from collected import a_run, grades, metrics, write_run

from mcgrpo.analyse.records import Measure
from mcgrpo.files import write_jsonl
from mcgrpo.records import Plan, Primary, SignFlips
from mcgrpo.study.planned import write_plan


@pytest.fixture
def results(tmp_path):
    """An untrained run and two seeds of a trained one, with their plan beside them."""
    runs = [a_run("none"), a_run(), a_run(seed=1)]
    for run, (benchmark, more) in product(runs, {"sums": {}, "others": {"level": 3}}.items()):
        path = tmp_path / "grades" / run.name / f"{benchmark}.jsonl"
        write_jsonl(path, [asdict(grade) | {"gold_parsable": True, **more} for grade in grades()])
    for run in runs[1:]:
        write_run(tmp_path, run, metrics())
    benchmarks = {"sums": "in", "others": "out"}
    study = Plan(
        study="mini",
        runs=runs,
        benchmarks={"toy": benchmarks},
        evaluations={run.name: benchmarks for run in runs},
        flips={runs[0].name: SignFlips("sums", 3, 9, [2], 1.0)},
        grading=["paper"],
        equivalence_margin=0.01,
        measures=["greedy", "avg@2"],
        primary=Primary("avg@2", []),
    )
    rates = Measure("mean/oracle-mean/zeros/k2", [0.5, 0.0, 0.25], "abc")
    write_jsonl(tmp_path / f"flips/{runs[0].name}/sums.jsonl", [rates])
    write_plan(tmp_path / "plan.json", study)
    return tmp_path
