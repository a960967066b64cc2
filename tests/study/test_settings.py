"""How the layers of a study's settings merge."""

import pytest
from studies import changed, load

from mcgrpo.study import plan
from mcgrpo.study.settings import completion_settings, evaluation, rollout_settings

MINI = load("mini")
SETTING, BENCHMARK = "toy-qwen3", "two-step"
THINK, PLAIN = {"enable_thinking": True}, {"enable_thinking": False}


def run_of(config, name):
    return {run.name: run for run in plan.runs(config)}[f"{SETTING}/{name}/seed0"]


def training(**values):
    return {"settings": {SETTING: {"training": values}}}


class TestCompletions:
    def test_what_differs_on_a_benchmark_holds_there_alone(self):
        config = changed(MINI, {"evaluation": {"by_benchmark": {BENCHMARK: {"samples": 7}}}})
        assert evaluation(config, BENCHMARK)["samples"] == 7
        assert evaluation(config, "three-step") == MINI["evaluation"]

    def test_the_chat_template_is_that_of_the_training(self):
        config = changed(MINI, training(chat_template_kwargs=THINK))
        for name in ("none/G0/default", "grpo/G2/default"):
            drawn = completion_settings(config, run_of(config, name), BENCHMARK)
            assert drawn == MINI["evaluation"] | {"chat_template_kwargs": THINK}

    @pytest.mark.parametrize(("wanted", "drawn"), [(PLAIN, PLAIN), (None, {})])
    def test_a_variant_of_another_chat_template_is_evaluated_with_it(self, wanted, drawn):
        variant = {"variants": {"composite": {"training": {"chat_template_kwargs": wanted}}}}
        config = changed(MINI, training(chat_template_kwargs=THINK) | variant)
        run = run_of(config, "grpo/G2/composite")
        assert completion_settings(config, run, BENCHMARK)["chat_template_kwargs"] == drawn

    def test_rollouts_for_sign_flips_are_sampled_from_the_whole_distribution(self):
        config = changed(MINI, {"evaluation": {"top_p": 0.5, "temperature": 0.1}})
        entry = plan.expand(config)[f"{SETTING}/none/G0/default/seed0"]
        drawn = rollout_settings(config, entry.run, entry.flips)
        assert (drawn["greedy"], drawn["samples"], drawn["prompts"]) == (False, 128, 128)
        assert (drawn["temperature"], drawn["top_p"]) == (1.0, 1.0)
