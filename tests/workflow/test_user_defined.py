"""A study that names a user-defined estimator or task: planned, made, and made anew when that changes."""

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


TASK = """
from mcgrpo.rewards import Task


class Even(Task):
    system_prompt = "Write an even number of characters."

    def read(self, completion, protocol):
        return str(len(completion))

    def gold(self, answer, protocol):
        return "even"

    def compare(self, extracted, gold, protocol):
        return "wrong" if int(extracted) % 2 else "correct"

    def wrap(self, answer):
        return 2 * answer


even = Even()
"""
ASKED = f"""
tracking_uri: null
datasets: {{gsm8k: {{folder: {ROOT}/tests/data/gsm8k, task: "my_tasks:even"}}}}
settings: {{tiny-random: {{prompt: "my_tasks:even", training: {{max_completion_length: 8, max_steps: 1}}}}}}
experiments: {{main: {{methods: [grpo], num_generations: [2]}}}}
"""


@pytest.fixture
def smoke(empty):
    """The smoke test's study with a user-defined variant, in a folder that has its module."""
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


def test_a_task_is_asked_judged_and_reported_and_all_of_it_anew_when_its_code_changes(empty):
    module = empty.folder / "my_tasks.py"
    module.write_text(TASK)
    study = empty.of(load("smoke")).changed(ASKED)
    made = "reports/smoke/tables.md", "resources/data/smoke/gsm8k.audit.json"
    study.made(*made, "--quiet", "rules")
    results, evaluation = study.folder / "results/smoke", "tiny-random/grpo/G2/default/seed0/gsm8k.jsonl"
    completions, grades = (
        [json.loads(line) for line in (results / kind / evaluation).read_text().splitlines()]
        for kind in ("completions", "grades")
    )
    found = [row["verdict"] for row in grades]
    assert found == [("correct", "wrong")[len(row["completion"]) % 2] for row in completions]
    assert {*found} == {"correct", "wrong"}
    audit = json.loads((study.folder / made[1]).read_text())
    assert audit["task"] == "my_tasks:even" and not audit["splits"]["test"]["golds_not_correct"]["count"]
    sampled = [row["verdict"] == "correct" for row in grades if row["decoding"] == "sampled"]
    share = f" {100 * sum(sampled) / len(sampled):.1f} "
    assert share in (study.folder / made[0]).read_text()
    assert study.jobs(*made) == {}
    module.write_text(TASK.replace('return "wrong" if', 'return "equivalent" if'))
    assert {"audit", "train", "generate", "grade"} <= study.jobs(*made).keys()
    module.write_text(TASK.replace("even = ", "odd = "))
    refused = study.run("--dry-run")
    assert (
        refused.returncode and "datasets.gsm8k.task: task 'my_tasks:even': 'even' of my_tasks should be" in refused.log
    )
