from pathlib import Path

import pytest
import yaml
from studies import changed, load, refused

from mcgrpo.study import check as study
from mcgrpo.study import plan

ROOT = Path(__file__).parents[2]
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/study.schema.yaml").read_text())


MINI = load("mini")


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


def shipped():
    return sorted(path.stem for path in (ROOT / "config").glob("*.yaml") if "study" in yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("odd", ["\u202e", "\0", "\x07", "\x1b[2J", "\x7f", "\ud800"])
def test_a_title_that_no_report_could_show_is_refused(odd):
    assert refused(changed(MINI, {"title": f"A{odd}b"})).startswith(f"title: {f'A{odd}b'!r} does not match")


def test_a_model_folder_that_snakemake_takes_for_a_wildcard_is_refused():
    assert "models.own.folder: '/a/{b}'" in refused(changed(MINI, {"models": {"own": {"folder": "/a/{b}"}}}))


@pytest.mark.parametrize("change", [{"study": "quick\n"}, {"study": 101 * "a"}, {"reports": "-n"}, {"reports": "r\n"}])
def test_names_that_are_no_folders_of_ours_are_refused(change):
    (key,) = change
    assert refused(changed(MINI, change)).startswith(f"{key}: ")


def test_an_overlay_replaces_a_toy_by_a_folder(tmp_path):
    own = {"toy": None, "warm_start": None, "folder": str(tmp_path)}
    study.check(config := changed(MINI, {"models": {"toy-qwen3": own}}), SCHEMA)
    assert config["models"]["toy-qwen3"] == {"folder": str(tmp_path)}


def test_a_title_may_have_lines_and_any_letters():
    study.check(changed(MINI, {"title": "A study\n\tin {2,4,8}: \\input ~^é中文\u200b"}), SCHEMA)


@pytest.mark.parametrize("name", shipped())
def test_shipped_studies_are_sound(name, tmp_path, monkeypatch):
    if name == "smollm2":  # its folder is made by a script
        monkeypatch.chdir(tmp_path)
        Path("resources/smollm2").mkdir(parents=True)
    base = {"cut-down": MINI, "reference": MINI, "one-gpu": load("config"), "qwen2.5-0.5b": load("config")}
    config = changed(base[name], load(name)) if name in base else load(name)
    study.check(config, SCHEMA)
    assert plan.runs(config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stduy": 1}, "the study: unknown key 'stduy'; did you mean 'study'?"),
        ({True: 3}, "the study: unknown key True; known keys: "),
        (
            {"datasets": {"two-step.released": {"task": "gsm8k", "toy": {"kind": "two-step", "seed": 2}}}},
            "datasets: 'two-step.released' should not be valid under {'pattern': '[.](released|robust)$'}",
        ),
        (
            {"models": {"toy-qwen3": {"warm_start": {"datasets": ["one-step"]}}}},
            "models.toy-qwen3.warm_start.datasets: no 'one-step' under datasets (there is: two-step, three-step)",
        ),
        (
            {"models": {"toy-qwen3": {"warm_start": {"datasets": ["three-step"], "until_solved": 0.5}}}},
            "datasets.three-step.splits: no 'train', which models.toy-qwen3.warm_start needs",
        ),
        (
            {
                "settings": {
                    "again": {
                        "model": "toy-qwen3",
                        "dataset": "two-step",
                        "prompt": "gsm8k",
                        "benchmarks": {"in": ["two-step"]},
                    }
                }
            },
            "models.toy-qwen3.warm_start: its settings have different prompts (gsm8k, plain)",
        ),
        (
            {"settings": {"toy-qwen3": {"training": {"betta": 0}}}},
            "settings.toy-qwen3.training: unknown key 'betta'; did you mean 'beta'?",
        ),
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
        ({"training": {"learning_rate": "6e-3"}}, "training.learning_rate: '6e-3' is text; YAML wants"),
        ({"study": "a/b"}, "study: 'a/b' does not match"),
        ({"experiments": {"main": {"num_generations": [1]}}}, "experiments.main.num_generations.0: 1 is less than"),
        (
            {"models": {"toy-qwen3": {"hub": "x"}}},
            "models.toy-qwen3: exactly one of hub, folder, toy is needed",
        ),
        ({"datasets": {"none": {"task": "math"}}}, "datasets.none: exactly one of hub, folder, toy is needed"),
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
        (
            {"settings": {"toy-qwen3": {"benchmarks": {"out": ["four"]}}}},
            "settings.toy-qwen3.benchmarks.out: no 'four' under datasets",
        ),
        (
            {"experiments": {"main": {"variants": ["fromat"]}}},
            "experiments.main.variants: no 'fromat' under variants (there is: default, composite, ",
        ),
        ({"evaluation": {"by_benchmark": {"gsm8": {}}}}, "evaluation.by_benchmark: no 'gsm8' under datasets"),
        (
            {"settings": {"toy-qwen3": {"dataset": "three-step"}}},
            "datasets.three-step.splits: no 'train', which settings.toy-qwen3 needs",
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"experiments": {"main": {"num_generations": []}}},
            "experiments.main: methods and num_generations are",
        ),
        ({"variants": {"flip-0.5": {}}}, "variants: 'flip-0.5' should not be valid"),
        (
            {"experiments": {"sign-flips": {"sign_flips": {"rollouts": 8}}}},
            "experiments.sign-flips.sign_flips: rollouts=8 is not above subset_sizes=[2, 4, 8]",
        ),
        (
            {"evaluation": {"vllm_max_model_length": 24}},
            "evaluation of three-step: vllm_max_model_length=24 leaves no room for a prompt beside max_new_tokens=30",
        ),
        (
            {"variants": {"composite": {"settings": {"toy": {}}}}},
            "variants.composite.settings: no 'toy' under",
        ),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(change, message):
    assert refused(changed(MINI, change)).startswith(message)
