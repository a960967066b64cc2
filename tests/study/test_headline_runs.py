"""Which runs come first, and of how many seeds there is an answer."""

import pytest
import studies

from mcgrpo.study.headline import answers, headline_runs
from mcgrpo.study.plan import expand


def test_the_headline_is_all_that_is_compared_at_the_smallest_g():
    found = headline_runs(entry.run for entry in expand(studies.load("mini")).values())
    assert {(run.num_generations, run.variant) for run in found} == {(2, "default")}
    assert {run.method for run in found if run.setting == "toy-llama"} == {"grpo", "mc-grpo", "grpo-plus1"}
    assert {"dapo", "mc-dapo", "dr-grpo", "mc-dr-grpo"} < {run.method for run in found}


def test_the_smallest_g_is_that_of_each_setting():
    base = {"settings": ["toy-qwen3"], "methods": ["grpo", "mc-grpo"], "num_generations": [4, 8], "seeds": [0]}
    config = studies.load("mini")
    config["experiments"] = {"a": base, "b": base | {"settings": ["toy-llama"], "num_generations": [2, 4]}}
    found = headline_runs(entry.run for entry in expand(config).values())
    assert {(run.setting, run.num_generations) for run in found} == {("toy-qwen3", 4), ("toy-llama", 2)}


def test_it_is_one_that_the_baseline_has():
    """As in the comparisons of the headline."""
    base = {"settings": ["toy-qwen3"], "methods": ["mc-grpo"], "num_generations": [2, 4], "seeds": [0]}
    config = studies.load("mini")
    config["experiments"] = {"a": base, "b": base | {"methods": ["grpo"], "num_generations": [4]}}
    found = headline_runs(entry.run for entry in expand(config).values())
    assert {(run.method, run.num_generations) for run in found} == {("grpo", 4), ("mc-grpo", 4)}


def test_a_study_without_a_median_has_none():
    config = studies.load("mini")
    config["experiments"] = {"main": {"settings": ["toy-qwen3"], "methods": ["grpo"], "num_generations": [2]}}
    assert answers(headline_runs(entry.run for entry in expand(config).values())) == {}


@pytest.mark.parametrize(("seeds", "counts"), [(1, [1]), (2, [2]), (5, [2, 4, 5]), (16, [2, 4, 8, 16])])
def test_each_answer_has_twice_the_seeds(seeds, counts):
    config = studies.load("mini")
    main = {"settings": ["toy-qwen3"], "methods": ["grpo", "mc-grpo"], "num_generations": [2]}
    config["experiments"] = {"main": main | {"seeds": [*range(3, 3 + seeds)]}}
    found = answers(headline_runs(entry.run for entry in expand(config).values()))
    assert list(found) == counts
    assert [len({run.seed for run in runs}) for runs in found.values()] == counts
    assert [len(runs) for runs in found.values()] == [2 * count for count in counts]
