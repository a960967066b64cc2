"""A study that names an estimator of its own: planned, trained, and trained anew when that changes."""

import json

import pytest
from studies import ROOT, load

pytestmark = pytest.mark.slow

OWN = """
from mcgrpo.estimators import Estimator


def centre(rewards):
    return (rewards.amin(1, keepdim=True) + rewards.amax(1, keepdim=True)) / 2


midrange = Estimator(centre, extra_rollouts=2)
"""
NAMED = f"""
tracking_uri: null
datasets: {{gsm8k: {{folder: {ROOT}/tests/data/gsm8k}}}}
variants: {{midrange: {{training: {{estimator: "my_estimators:midrange", max_completion_length: 8, max_steps: 1}}}}}}
experiments: {{main: {{variants: [midrange]}}}}
"""
RUN = "results/smoke/runs/tiny-random/grpo/G4/midrange/seed0"


@pytest.fixture
def smoke(empty):
    """The smoke test's study with a variant of somebody's own, in a folder that has its module."""
    (empty.folder / "my_estimators.py").write_text(OWN)
    return empty.of(load("smoke")).changed(NAMED)


def test_it_trains_and_trains_anew_when_its_code_changes(smoke):
    study = smoke
    study.made(RUN, "--quiet", "rules")
    record = json.loads((study.folder / RUN / "run.json").read_text())
    assert record["estimator"] == "my_estimators:midrange" and record["outcome"]["status"] == "finished"
    (row,) = [json.loads(line) for line in (study.folder / RUN / "metrics.jsonl").read_text().splitlines()][:1]
    assert "drawn/centre" in row and "advantage/frac_scale_zero" not in row
    assert study.jobs(RUN) == {}
    module = study.folder / "my_estimators.py"
    module.write_text(OWN.replace("/ 2", "/ 3"))
    assert study.jobs(RUN) == {"train": 1}
