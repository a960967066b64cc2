"""The key `primary`: what a study's answer rests on, checked before anything runs."""

import pytest
from studies import changed, load

from mcgrpo.records import Primary, PrimaryComparison
from mcgrpo.study import plan
from mcgrpo.study.check import StudyError, check

MAIN = {"settings": ["toy-qwen3"], "methods": ["grpo", "mc-grpo", "grpo-plus1"], "num_generations": [2, 4]}
OTHER = {"settings": ["toy-llama"], "methods": ["grpo", "mc-grpo"], "num_generations": [2]}
STUDY = {**load("mini"), "seeds": [0], "experiments": {"main": MAIN, "other": OTHER}}
STUDY.pop("primary", None)


def primary(**key):
    return plan.plan_of(changed(STUDY, {"primary": key})).primary


def test_by_default_it_is_all_that_the_study_compares_in_sampled_accuracy():
    both = ["toy-llama", "toy-qwen3"]
    one = ["toy-qwen3"]
    compared = [("grpo-plus1", 2, one), ("grpo-plus1", 4, one), ("grpo", 2, both), ("grpo", 4, one)]
    expected = Primary("avg@2", [PrimaryComparison(*each) for each in compared])
    assert plan.plan_of(STUDY).primary == primary() == expected


def test_settings_and_g_narrow_it_and_the_decoding_is_chosen():
    found = primary(settings=["toy-qwen3"], num_generations=[2], decoding="greedy")
    assert found.measure == "greedy"
    assert [(each.baseline, each.settings) for each in found.comparisons] == [
        ("grpo-plus1", ["toy-qwen3"]), ("grpo", ["toy-qwen3"]),
    ]  # fmt: skip


def test_what_an_overlay_leaves_out_is_left_out():
    wanted = {"settings": ["toy-qwen3", "toy-llama"], "num_generations": [2, 4, 8]}
    alone = changed(STUDY, {"primary": wanted, "experiments": {"other": None}})
    for methods, settings in ((MAIN["methods"], {("toy-qwen3",)}), (["dapo"], set())):
        planned = plan.plan_of({**alone, "experiments": {"main": MAIN | {"methods": methods}}}).primary
        assert {tuple(each.settings) for each in planned.comparisons} == settings


def test_without_samples_it_is_greedy():
    assert plan.plan_of(changed(STUDY, {"evaluation": {"samples": 0}})).primary.measure == "greedy"


def test_what_is_not_evaluated_in_distribution_is_not_compared():
    config = changed(STUDY, {"experiments": {"main": {"evaluate": ["out"]}, "other": {"evaluate": ["out"]}}})
    assert plan.plan_of(config).primary.comparisons == []


@pytest.mark.parametrize(
    ("key", "change", "culprit"),
    [
        ({"settings": ["toy-qwen4"]}, {}, r"primary\.settings: no 'toy-qwen4' under settings"),
        ({"num_generations": [16]}, {}, r"primary\.num_generations: \[16\], but the study compares mc-grpo at 2, 4"),
        ({"settings": ["toy-llama"], "num_generations": [4]}, {}, r"primary\.num_generations: \[4\], .* at 2"),
        ({"settings": ["toy-llama"]}, {"experiments": {"other": None}}, r"primary\.settings: .* at toy-qwen3"),
        ({"decoding": "sampled"}, {"evaluation": {"samples": 0}}, r"primary\.decoding: 'sampled', but"),
        ({"decoding": "beam"}, {}, r"primary\.decoding: 'beam' is not one of"),
        ({"seeds": [0]}, {}, r"primary: unknown key 'seeds'"),
    ],
)
def test_what_the_study_does_not_have_is_named(key, change, culprit):
    with pytest.raises(StudyError, match=culprit):
        check(changed(STUDY, {"primary": key, **change}))
