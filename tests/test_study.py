import copy
import json
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from snakemake.utils import update_config

from mcgrpo import answers, collect, study
from mcgrpo.estimators import ESTIMATORS
from mcgrpo.files import as_record, read_json
from mcgrpo.methods import METHODS, UNTRAINED
from mcgrpo.prompts import SYSTEM_PROMPTS
from mcgrpo.records import PROTOCOL_SUFFIXES, Run
from mcgrpo.study import StudyError

ROOT = Path(__file__).parent.parent
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/study.schema.yaml").read_text())
TRAINING = SCHEMA["$defs"]["training"]["properties"]


def load(name):
    return yaml.safe_load((ROOT / "config" / f"{name}.yaml").read_text())


def changed(config, change):
    """A copy of a study with another one laid over it, as Snakemake does with several config files."""
    config = copy.deepcopy(config)
    update_config(config, copy.deepcopy(change))
    return config


MINI = load("mini")
FIXED = changed(MINI, {"training": {"per_device_train_batch_size": 24}})
del FIXED["training"]["prompts_per_step"]


def refused(config):
    """The one line with which a study is refused."""
    with pytest.raises(StudyError) as caught:
        study.check(config, SCHEMA)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


def shipped():
    return sorted(path.stem for path in (ROOT / "config").glob("*.yaml") if not path.match("*.lock.yaml"))


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", shipped())
def test_shipped_studies_are_sound(name):
    config = changed(MINI, load(name)) if name == "cut-down" else load(name)
    study.check(config, SCHEMA)
    assert study.runs(config)


def test_the_cut_down_study_is_cut_down():
    quick = changed(MINI, load("cut-down"))
    trained = [run for run in study.runs(quick) if run.method != UNTRAINED]
    assert len(trained) == 14 * 2
    assert {run.training["max_steps"] for run in trained} == {4}
    warm_start = MINI["models"]["toy-qwen3"]["toy"]["warm_start"]
    assert quick["models"]["toy-qwen3"]["toy"]["warm_start"] == warm_start | {"steps": 40}


def test_mini_has_21_cells_each_once():
    runs = study.runs(MINI)
    trained = [run for run in runs if run.method != UNTRAINED]
    cells = {(run.method, run.num_generations) for run in trained}
    assert cells == {(method, g) for method in METHODS for g in (2, 4, 8)}
    assert len(trained) == 21 * len(MINI["seeds"])
    assert len({run.name for run in runs}) == len(runs)
    assert [run.name for run in runs if run.method == UNTRAINED] == ["toy-qwen3/none/G0/default/seed0"]


def test_a_run_is_its_method_at_its_batch():
    runs = {run.name: run for run in study.runs(MINI)}
    run = runs["toy-qwen3/mc-dr-grpo/G4/default/seed3"]
    assert (run.loss_type, run.estimator, run.task, run.seed) == ("dr_grpo", "median", "gsm8k", 3)
    assert run.training["per_device_train_batch_size"] == 32
    assert "prompts_per_step" not in run.training
    assert runs["toy-qwen3/none/G0/default/seed0"].training == {}


def test_variant_over_setting_over_study():
    change = {
        "training": {"beta": 0.1, "epsilon": 0.3, "temperature": 0.5},
        "settings": {"toy-qwen3": {"training": {"epsilon": 0.4, "temperature": 0.6}}},
        "variants": {"format": {"training": {"temperature": 0.7}}},
        "experiments": {"main": {"variants": ["default", "format"]}},
    }
    runs = {run.name: run for run in study.runs(changed(MINI, change))}
    plain = runs["toy-qwen3/grpo/G2/default/seed0"]
    varied = runs["toy-qwen3/grpo/G2/format/seed0"]
    assert [plain.training[key] for key in ("beta", "epsilon", "temperature")] == [0.1, 0.4, 0.6]
    assert [varied.training[key] for key in ("beta", "epsilon", "temperature")] == [0.1, 0.4, 0.7]
    assert (plain.rewards, varied.rewards) == ({"accuracy": 1.0}, {"accuracy": 1.0, "format": 1.0})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stduy": 1}, "the study: unknown key 'stduy'; did you mean 'study'?"),
        ({"models": {"m": {"hubb": "x"}}}, "models.m: unknown key 'hubb'; did you mean 'hub'?"),
        (
            {"models": {"toy-qwen3": {"toy": {"layer": 3}}}},
            "models.toy-qwen3.toy: unknown key 'layer'; did you mean 'layers'?",
        ),
        (
            {"models": {"toy-qwen3": {"toy": {"warm_start": {"step": 3}}}}},
            "models.toy-qwen3.toy.warm_start: unknown key 'step'; did you mean 'steps'?",
        ),
        (
            {"datasets": {"two-step": {"spilts": {}}}},
            "datasets.two-step: unknown key 'spilts'; did you mean 'splits'?",
        ),
        (
            {"datasets": {"two-step": {"splits": {"tset": {}}}}},
            "datasets.two-step.splits: unknown key 'tset'; did you mean 'test'?",
        ),
        (
            {"datasets": {"two-step": {"splits": {"test": {"row": 1}}}}},
            "datasets.two-step.splits.test: unknown key 'row'; did you mean 'rows'?",
        ),
        ({"datasets": {"two-step": {"toy": {"sede": 1}}}}, "datasets.two-step.toy: unknown key 'sede'"),
        ({"settings": {"toy-qwen3": {"promt": "plain"}}}, "settings.toy-qwen3: unknown key 'promt'"),
        ({"settings": {"toy-qwen3": {"benchmarks": {"inn": []}}}}, "settings.toy-qwen3.benchmarks: unknown key 'inn'"),
        (
            {"settings": {"toy-qwen3": {"training": {"betta": 0}}}},
            "settings.toy-qwen3.training: unknown key 'betta'; did you mean 'beta'?",
        ),
        (
            {"training": {"lerning_rate": 1.0}},
            "training: unknown key 'lerning_rate'; did you mean 'learning_rate'?",
        ),
        ({"rewards": {"accurcy": 1.0}}, "rewards: unknown key 'accurcy'; did you mean 'accuracy'?"),
        ({"variants": {"format": {"rewrads": {}}}}, "variants.format: unknown key 'rewrads'"),
        ({"evaluation": {"sample": 1}}, "evaluation: unknown key 'sample'; did you mean 'samples'?"),
        ({"experiments": {"main": {"method": []}}}, "experiments.main: unknown key 'method'; did you mean 'methods'?"),
        ({"training": {"zzz": 1}}, "training: unknown key 'zzz'; known keys: prompts_per_step, "),
    ],
)
def test_an_unknown_key_is_named_with_a_suggestion(change, message):
    assert refused(changed(MINI, change)).startswith(message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": "0"}, "seeds: '0' is not of type 'array'"),
        ({"seeds": [0, 0]}, "seeds: [0, 0] has non-unique elements"),
        ({"training": {"learning_rate": "6e-3"}}, "training.learning_rate: '6e-3' is not of type 'number'"),
        ({"evaluation": {"top_p": 2}}, "evaluation.top_p: 2 is greater than the maximum of 1"),
        ({"study": "a/b"}, "study: 'a/b' does not match"),
        ({"experiments": {"main": {"methods": ["gpro"]}}}, "experiments.main.methods.0: 'gpro' is not one of"),
        ({"experiments": {"main": {"num_generations": [1]}}}, "experiments.main.num_generations.0: 1 is less than"),
        ({"settings": {"toy-qwen3": {"prompt": "chat"}}}, "settings.toy-qwen3.prompt: 'chat' is not one of"),
        (
            {"models": {"toy-qwen3": {"hub": "x"}}},
            "models.toy-qwen3: exactly one of hub, folder, toy is needed",
        ),
        ({"models": {"none": {}}}, "models.none: exactly one of hub, folder, toy is needed"),
        ({"datasets": {"none": {"task": "math"}}}, "datasets.none: exactly one of hub, folder, toy is needed"),
        ({"models": {"toy-qwen3": {"toy": {"architecture": "bert"}}}}, "models.toy-qwen3.toy.architecture: 'bert'"),
    ],
)
def test_a_wrong_value_is_named(change, message):
    assert refused(changed(MINI, change)).startswith(message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"settings": {"toy-qwen3": {"model": "qwen"}}},
            "settings.toy-qwen3.model: no 'qwen' under models (there is: toy-qwen3, toy-llama)",
        ),
        ({"settings": {"toy-qwen3": {"dataset": "sums"}}}, "settings.toy-qwen3.dataset: no 'sums' under datasets"),
        (
            {"settings": {"toy-qwen3": {"benchmarks": {"out": ["four"]}}}},
            "settings.toy-qwen3.benchmarks.out: no 'four' under datasets",
        ),
        ({"experiments": {"main": {"settings": ["toy"]}}}, "experiments.main.settings: no 'toy' under settings"),
        (
            {"experiments": {"main": {"variants": ["fromat"]}}},
            "experiments.main.variants: no 'fromat' under variants (there is: default, format)",
        ),
        ({"models": {"mine": {"folder": "no/where"}}}, "models.mine.folder: no/where is not a folder"),
        (
            {"datasets": {"mine": {"task": "math", "folder": "no/where"}}},
            "datasets.mine.folder: no/where is not a folder",
        ),
        (
            {"settings": {"toy-qwen3": {"dataset": "three-step"}}},
            "datasets.three-step.splits: no 'train', which settings.toy-qwen3 needs",
        ),
        (
            {"datasets": {"mine": {"task": "math", "toy": {"kind": "two-step", "seed": 0}}}},
            "datasets.mine.splits.train.rows: needed",
        ),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(change, message):
    assert refused(changed(MINI, change)).startswith(message)


def test_a_benchmark_needs_a_test_split():
    config = changed(MINI, {})
    config["datasets"]["three-step"]["splits"] = {"train": {"rows": 8}}
    assert refused(config).startswith("datasets.three-step.splits: no 'test', which settings.toy-qwen3 needs")


@pytest.mark.parametrize("missing", SCHEMA["required"])
def test_a_missing_part_is_named(missing):
    config = {key: value for key, value in MINI.items() if key != missing}
    assert refused(config) == f"the study: {missing!r} is a required property"


def test_g_that_does_not_divide_the_batch_is_refused_with_the_arithmetic():
    study.check(FIXED, SCHEMA)
    message = refused(changed(FIXED, {"experiments": {"main": {"num_generations": [2, 16]}}}))
    assert message.startswith("run toy-qwen3/dapo/G16/default/seed0: num_generations=16 does not divide the 24 rows")
    assert "per_device_train_batch_size=24 x steps_per_generation=1" in message
    config = changed(FIXED, {"training": {"gradient_accumulation_steps": 2}})
    study.check(changed(config, {"experiments": {"main": {"num_generations": [16]}}}), SCHEMA)


def test_the_batch_is_given_in_one_way():
    message = refused(changed(MINI, {"training": {"per_device_train_batch_size": 8}}))
    assert "both prompts_per_step and per_device_train_batch_size" in message
    assert message.startswith("settings.toy-qwen3, variant default:")
    config = changed(MINI, {})
    del config["training"]["prompts_per_step"]
    assert "training needs prompts_per_step or per_device_train_batch_size" in refused(config)


def test_the_schema_knows_what_the_code_knows():
    from mcgrpo.rewards import reward_functions
    from mcgrpo.trainer import MCGRPOConfig

    known = {field.name for field in fields(MCGRPOConfig)}
    assert set(TRAINING) - {"prompts_per_step"} <= known
    methods = SCHEMA["properties"]["experiments"]["additionalProperties"]["properties"]["methods"]
    assert methods["items"]["enum"] == list(METHODS)
    setting = SCHEMA["properties"]["settings"]["additionalProperties"]["properties"]
    assert setting["prompt"]["enum"] == list(SYSTEM_PROMPTS)
    protocols = SCHEMA["properties"]["protocols"]["items"]["enum"]
    assert protocols == list(PROTOCOL_SUFFIXES) == list(answers.PROTOCOLS) == list(collect.PROTOCOLS)
    assert {method.estimator for method in METHODS.values()} <= set(ESTIMATORS)
    assert {method.baseline for method in METHODS.values()} - {None} <= set(METHODS)
    names = list(SCHEMA["$defs"]["rewards"]["properties"])
    assert len(reward_functions("gsm8k", names)) == len(names)


def test_the_schema_knows_the_toy_models():
    from mcgrpo.answers import TASKS
    from mcgrpo.toy.models import ModelSpec
    from mcgrpo.toy.task import KINDS
    from mcgrpo.toy.warm_start import WarmStart

    spec = SCHEMA["$defs"]["toy_model"]
    for part, record in ((spec, ModelSpec), (spec["properties"]["warm_start"], WarmStart)):
        assert list(part["properties"]) == [field.name for field in fields(record)]
        assert part["required"] == [field.name for field in fields(record) if field.default is MISSING]
    data = SCHEMA["properties"]["datasets"]["additionalProperties"]["properties"]
    assert set(data["toy"]["properties"]["kind"]["enum"]) == set(KINDS)
    assert tuple(data["task"]["enum"]) == TASKS


def test_figures_follow_from_what_is_measured():
    assert study.figures(MINI) == ["accuracy-greedy", "accuracy-sampled", "rewards", "ood"]
    assert study.figures(load("smoke")) == ["accuracy-greedy", "accuracy-sampled", "rewards"]
    assert "accuracy-sampled" not in study.figures(changed(MINI, {"evaluation": {"samples": 0}}))


def test_the_plan_is_all_that_collect_needs(tmp_path):
    output = tmp_path / "plan.json"
    command = [sys.executable, "-m", "mcgrpo.study", "--config", json.dumps(MINI), "--output", str(output)]
    subprocess.run(command, check=True)
    plan = read_json(output)
    assert [as_record(Run, row, "plan") for row in plan["runs"]] == study.runs(MINI)
    assert plan["benchmarks"]["toy-qwen3"] == {"two-step": "in", "three-step": "out"}
