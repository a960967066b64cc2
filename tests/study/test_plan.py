import json
import subprocess
import sys
from collections import Counter

import pytest
from studies import changed, load

from mcgrpo.estimators.table import BUILT_IN
from mcgrpo.study import plan
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.planned import read_plan
from mcgrpo.study.settings import StudyError
from mcgrpo.study.variants import Flips, flip_variant, flips_of, is_rival


def only(config, **experiment):
    """The study with one experiment: GRPO at G=2, unless said otherwise."""
    grid = {"settings": ["toy-qwen3"], "methods": ["grpo"], "num_generations": [2]}
    return {**config, "experiments": {"one": {**grid, **experiment}}}


def run_of(config):
    """The one trained run of a study of one seed."""
    (run,) = [run for run in plan.runs({**config, "seeds": [0]}) if run.method != UNTRAINED]
    return run


MINI = load("mini")
REFERENCE, REVIEWER = (changed(MINI, load(name)) for name in ("reference", "reviewer"))
OURS = ("headline", "headline-llama", "mad-zero", "instability", "rivals", "rivals-maxrl", "rivals-rollouts")
"""Experiments of the mini study that the paper's has not; its headline is the paper's control."""
PAPER = load("config")


def trained(config, experiment):
    config = {**config, "experiments": {experiment: config["experiments"][experiment]}}
    return [run for run in plan.runs(config) if run.method != UNTRAINED]


def test_the_mini_study_has_the_papers_experiments():
    """At fewer seeds, and with what the paper does not ask."""
    assert {*MINI["experiments"], "control"} == {*PAPER["experiments"], *OURS}


def test_rivals_draw_as_many_rollouts_as_what_they_are_compared_with():
    rows = {
        (run.method, run.num_generations, run.variant): run.training["per_device_train_batch_size"]
        for run in plan.runs(REFERENCE)
        if run.method != UNTRAINED
    }
    prompts = rows["mc-grpo", 2, "default"] // 2
    assert rows["mc-grpo", 2, "default"] + prompts * BUILT_IN["median-mad"].extra_rollouts == rows["grpo", 3, "default"]
    assert rows["grpo", 2, "rival-prompts-x4"] == rows["grpo", 8, "default"]
    estimators = {run.estimator for run in plan.runs(REFERENCE) if is_rival(run.variant)}
    assert estimators == {"sign", "batch-mean", "james-stein", "pods", "quantile-0.4", "maxrl", "mean-std"}
    assert {g for _, g, variant in rows if variant == "rival-maxrl"} == {4, 8}


def test_a_run_that_experiments_share_is_one_run():
    alone = sum(len(trained(PAPER, name)) for name in PAPER["experiments"])
    together = [run for run in plan.runs(PAPER) if run.method != UNTRAINED]
    # out of distribution: 60 runs of the main grid; of the control's 45 all but GRPO+1; the trained sign flips
    assert len(together) == alone - 60 - 30 - 2
    assert len({run.name for run in together}) == len(together)


@pytest.mark.parametrize(("study", "seeds", "second"), [(MINI, 5, [2]), (REFERENCE, 16, [2, 4, 8])])
def test_the_headline_has_its_control_and_a_second_model(study, seeds, second):
    for experiment, setting, sizes in (("headline", "toy-qwen3", [2, 4, 8]), ("headline-llama", "toy-llama", second)):
        cells = {(setting, method, g): seeds for method in ("grpo", "mc-grpo", "grpo-plus1") for g in sizes}
        assert Counter((run.setting, run.method, run.num_generations) for run in trained(study, experiment)) == cells


def test_the_reference_study_has_the_trainings_of_the_mini_study_and_more_seeds():
    mini, reference = ({run.name: run.training for run in plan.runs(study)} for study in (MINI, REFERENCE))
    assert mini.items() <= reference.items()
    seeds = Counter(name.rsplit("/", 1)[0] for name in reference if f"/{UNTRAINED}/" not in name)
    assert min(seeds.values()) == 8


def test_variant_over_setting_over_study():
    change = {
        "training": {"beta": 0.1, "epsilon": 0.3, "temperature": 0.5, "learning_rate": 1.0},
        "settings": {"toy-qwen3": {"training": {"epsilon": 0.4, "temperature": 0.6, "learning_rate": 2.0}}},
        "variants": {
            "composite": {
                "training": {"temperature": 0.7, "learning_rate": 3.0},
                "settings": {"toy-qwen3": {"training": {"learning_rate": 4.0}}},
            }
        },
    }
    study = changed(MINI, change)
    keys = ("beta", "epsilon", "temperature", "learning_rate")
    plain, varied = run_of(only(study)), run_of(only(study, variants=["composite"]))
    assert [plain.training[key] for key in keys] == [0.1, 0.4, 0.6, 2.0]
    assert [varied.training[key] for key in keys] == [0.1, 0.4, 0.7, 4.0]
    assert (plain.rewards, varied.rewards) == ({"accuracy": 1.0}, {"accuracy": 1.0, "format": 1.0})


def test_a_protocol_changes_the_switches_and_the_estimator():
    plain = run_of(only(MINI, methods=["mc-dr-grpo"]))
    released = run_of(only(MINI, methods=["mc-dr-grpo"], variants=["released"]))
    assert (plain.estimator, released.estimator) == ("median", "median-mad")
    assert released.training["group_by"] == "position" and "group_by" not in plain.training
    assert run_of(only(MINI, methods=["mc-grpo"], variants=["mixed-groups"])).training["group_by"] == "position"


def test_a_method_that_a_protocol_cannot_run_is_named():
    study = changed(only(PAPER, settings=["qwen3-4b-math"], methods=["grpo-plus1"], variants=["released"]), {})
    with pytest.raises(StudyError, match="run qwen3-4b-math/grpo-plus1/G2/released: "):
        plan.runs(study)


def test_updates_are_matched_by_accumulating_gradients():
    rows = {}
    for run in trained(PAPER, "updates"):
        training = run.training
        assert training["per_device_train_batch_size"] == 16
        rows[run.num_generations] = 2 * 16 * training["gradient_accumulation_steps"]
    assert rows == {4: 64, 8: 128}  # 16 prompts a step over two processes, as at G=2 by default
    (plain,) = [r for r in trained(PAPER, "control") if r.name == "qwen3-1.7b-gsm8k/grpo/G2/default/seed0"]
    assert 2 * plain.training["per_device_train_batch_size"] == 16 * 2


def test_null_takes_a_key_away():
    fixed = run_of(only(MINI, num_generations=[8], variants=["fixed-rows"])).training
    assert fixed["per_device_train_batch_size"] == 40 and fixed["num_train_epochs"] == 1.25
    assert "max_steps" not in fixed


def test_a_training_that_does_not_fit_is_named():
    with pytest.raises(StudyError, match=r"run toy-qwen3/grpo/G2/default: .*=3 x num_generations=2 rows do not divide"):
        plan.runs(only(changed(MINI, {"training": {"prompts_per_step": 3, "per_device_train_batch_size": 4}})))


def test_a_sweep_of_flips_is_a_variant_each():
    runs = plan.runs(only(MINI, injected_flips={"bernoulli": [0.05], "exact": [0.5]}, seeds=[4]))
    flips = {r.variant: r.training["advantage_flip_rate"] for r in runs if r.method != UNTRAINED}
    assert flips == {"flip-0.05": 0.05, "flip-exact-0.5": 0.5}
    assert {run.seed for run in runs if run.method != UNTRAINED} == {4}


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.1, 0.125, 0.25, 1.0])
@pytest.mark.parametrize("rule", ["bernoulli", "exact"])
def test_a_variant_of_flips_says_what_it_is(rate, rule):
    assert flips_of(flip_variant(Flips(rate, rule))) == Flips(rate, rule)
    assert flips_of("default") is flips_of("flip-") is flips_of("flip-x") is None


def test_a_run_is_evaluated_where_an_experiment_asks_for_it():
    found = plan.plan_of(MINI).evaluations
    name = "toy-qwen3/{}/G{}/default/seed0".format
    assert found[name("grpo", 2)] == {"two-step": "in", "three-step": "out"} == found[name("none", 0)]
    assert found[name("grpo", 8)] == found[name("dapo", 2)] == {"two-step": "in"}
    paper = plan.plan_of(PAPER).evaluations
    assert paper["llama-3.2-3b-math/none/G0/default/seed0"] == {}
    assert set(paper["qwen3-4b-math/mc-grpo/G4/default/seed2"]) == {"math500", "aime24", "amc23"}


def test_sign_flips_are_measured_where_an_experiment_asks_for_it():
    flips = plan.plan_of(PAPER).flips
    untrained = {"qwen3-1.7b-gsm8k": "gsm8k", "qwen2.5-7b-math": "math500", "llama-3.2-3b-math": "math500"}
    assert {n.split("/")[0]: f.benchmark for n, f in flips.items() if "/none/" in n} == untrained
    assert len(flips) == 5 and all((f.prompts, f.rollouts) == (250, 128) for f in flips.values())


def test_the_untrained_model_is_measured_by_the_experiment_that_is_about_it():
    study = changed(PAPER, {"experiments": {"sign-flips-trained": {"sign_flips": {"prompts": 9}}}})
    prompts = {name.split("/")[1]: flips.prompts for name, flips in plan.plan_of(study).flips.items()}
    assert prompts == {"none": 250, "grpo": 9}
    again = {"settings": ["qwen3-1.7b-gsm8k"], "sign_flips": study["experiments"]["sign-flips-trained"]["sign_flips"]}
    with pytest.raises(StudyError, match="/none/G0/default/seed0: two experiments measure its"):
        plan.plan_of(changed(study, {"experiments": {"again": again}}))


def figures(study):
    return plan.figures(study, plan.expand(study))


def test_figures_follow_from_what_is_measured():
    everything = set(figures(MINI))
    assert {"sign-flips", "injected-flips"} < everything
    assert set(figures(PAPER)) == everything | {"pass-at-k"}  # which takes more than two samples
    assert set(figures(REVIEWER)) - everything == {"pass-at-k", "rates"}
    smoke = {"gains-sampled", "gains-greedy", "accuracy-greedy", "accuracy-sampled", "rewards", "latency"}
    assert set(figures(load("smoke"))) == smoke | {"budget"}
    assert "budget" not in figures(load("smoke") | {"rewards": {"format": 1.0}})
    assert "accuracy-sampled" not in figures(changed(MINI, {"evaluation": {"samples": 0}}))


def test_gains_are_drawn_where_a_method_meets_its_baseline_at_one_g():
    main = {"settings": ["tiny-random"], "methods": ["mc-grpo"], "num_generations": [2]}
    other = main | {"methods": ["grpo"], "num_generations": [4]}
    apart, alone = ({**load("smoke"), "experiments": each} for each in ({"main": main, "other": other}, {"main": main}))
    assert not [name for study in (apart, alone) for name in figures(study) if name.startswith("gains")]


def test_the_plan_is_written_as_it_is_read(tmp_path):
    output, part = tmp_path / "plan.json", plan.plan_part(MINI)
    command = [sys.executable, "-m", "mcgrpo.study.plan", "--config", json.dumps(part), "--output", str(output)]
    subprocess.run(command, check=True)
    found = read_plan(output)
    assert found.runs == plan.runs(MINI) and found == plan.plan_of(MINI)
    assert plan.plan_part(changed(MINI, {"title": "x", "evaluation": {"top_p": 0.5}})) == part
