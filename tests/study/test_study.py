"""What is wrong in a study file is refused in one line that names it."""

import pytest
import yaml
from studies import ROOT, changed, load, refused

from mcgrpo.analyse.claims import check_questions
from mcgrpo.study.check import StudyError, check
from mcgrpo.study.plan import runs
from mcgrpo.study.read import read

MINI = load("mini")
REQUIRED = yaml.safe_load((ROOT / "workflow/schemas/study.schema.yaml").read_text())["required"]
OF_TWO_PROMPTS = {"model": "toy-qwen3", "dataset": "two-step", "prompt": "gsm8k", "benchmarks": {"in": ["two-step"]}}


def shipped():
    return sorted(path.stem for path in (ROOT / "config").glob("*.yaml") if "study" in yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("name", shipped())
def test_shipped_studies_are_sound(name):
    base = dict.fromkeys(("cut-down", "reference", "reviewer"), MINI)
    base |= dict.fromkeys(("one-gpu", "two-80gb", "qwen2.5-0.5b", "rehearsal"), load("config"))
    base |= {"smollm2-long": load("smollm2")}
    config = changed(base[name], load(name)) if name in base else load(name)
    check(config)
    check_questions(config)
    assert runs(config)


def test_the_study_for_smaller_cards_has_a_rehearsal():
    check(config := changed(changed(load("config"), load("two-80gb")), load("rehearsal")))
    assert {run.training["max_steps"] for run in runs(config) if run.training} == {2}


def test_an_overlay_replaces_a_toy_by_a_folder(tmp_path):
    own = {"toy": None, "warm_start": None, "folder": str(tmp_path)}
    check(config := changed(MINI, {"models": {"toy-qwen3": own}}))
    assert config["models"]["toy-qwen3"] == {"folder": str(tmp_path)}


def test_a_title_may_have_lines_and_any_letters():
    check(changed(MINI, {"title": "A study\n\tin {2,4,8}: \\input ~^é中文\u200b"}))


@pytest.mark.parametrize("odd", ["\u202e", "\0", "\x07", "\x1b[2J", "\x7f", "\ud800"])
def test_a_title_that_no_report_could_show_is_refused(odd):
    assert refused(changed(MINI, {"title": f"A{odd}b"})).startswith(f"title: {f'A{odd}b'!r} does not match")


@pytest.mark.parametrize("missing", REQUIRED)
def test_a_missing_part_is_named(missing):
    config = {key: value for key, value in MINI.items() if key != missing}
    assert refused(config) == f"the study: {missing!r} is a required property"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stduy": 1}, "the study: unknown key 'stduy'; did you mean 'study'?"),
        ({True: 3}, "the study: unknown key True; known keys: "),
        ({"settings": {"toy-qwen3": {"training": {"betta": 0}}}}, "settings.toy-qwen3.training: unknown key 'betta'"),
        ({"training": {"save_steps": 9}}, "training: unknown key 'save_steps'; it is a key of the study itself"),
        ({"training": {"zzz": 1}}, "training: unknown key 'zzz'; known keys: prompts_per_step, "),
        ({"seeds": "0"}, "seeds: '0' is not of type 'array'"),
        ({"seeds": [0, 0]}, "seeds: [0, 0] has non-unique elements"),
        ({"training": {"learning_rate": "6e-3"}}, "training.learning_rate: '6e-3' is text; YAML wants"),
        ({"study": "a/b"}, "study: 'a/b' does not match"),
        ({"study": "quick\n"}, "study: "),
        ({"study": 101 * "a"}, "study: "),
        ({"reports": "-n"}, "reports: "),
        ({"reports": "r\n"}, "reports: "),
        ({"experiments": {"main": {"num_generations": [1]}}}, "experiments.main.num_generations.0: 1 is less than"),
        (
            {"models": {"toy-qwen3": {"hub": "x"}}},
            "models.toy-qwen3: exactly one of hub, folder, toy is needed, not hub and toy; `hub: null` removes one",
        ),
        ({"models": {"own": {"folder": "/a/{b}"}}}, "models.own.folder: '/a/{b}'"),
        ({"variants": {"flip-0.5": {}}}, "variants: 'flip-0.5' should not be valid"),
    ],
)
def test_what_breaks_the_schema_is_named(change, message):
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
            {"datasets": {"two-step": {"task": "gsm9k"}}},
            "datasets.two-step.task: unknown task 'gsm9k'; there are: gsm8k, ",
        ),
        (
            {"settings": {"toy-qwen3": {"prompt": "plane"}}},
            "settings.toy-qwen3.prompt: unknown prompt 'plane'; there are",
        ),
        (
            {"datasets": {"two-step": {"task": "no_such:thing"}}},
            "datasets.two-step.task: task 'no_such:thing': cannot import 'no_such'",
        ),
        ({"selections": {"best": ["default", "fromat"]}}, "selections.best: no 'fromat' under variants"),
        ({"selections": {"composite": ["default", "released"]}}, "selections.composite: a variant has this name"),
        (
            {"experiments": {"main": {"variants": ["fromat"]}}},
            "experiments.main.variants: no 'fromat' under variants (there is: default, composite, ",
        ),
        ({"variants": {"composite": {"settings": {"toy": {}}}}}, "variants.composite.settings: no 'toy' under"),
        ({"evaluation": {"by_benchmark": {"gsm8": {}}}}, "evaluation.by_benchmark: no 'gsm8' under datasets"),
        (
            {"models": {"toy-qwen3": {"warm_start": {"datasets": ["one-step"]}}}},
            "models.toy-qwen3.warm_start.datasets: no 'one-step' under datasets (there is: two-step, three-step)",
        ),
        (
            {"models": {"toy-qwen3": {"warm_start": {"datasets": ["three-step"], "until_solved": 0.5}}}},
            "datasets.three-step.splits: no 'train', which models.toy-qwen3.warm_start needs",
        ),
        (
            {"settings": {"toy-qwen3": {"dataset": "three-step"}}},
            "datasets.three-step.splits: no 'train', which settings.toy-qwen3 needs",
        ),
        (
            {"settings": {"again": OF_TWO_PROMPTS}},
            "models.toy-qwen3.warm_start: its settings have different prompts (gsm8k, plain)",
        ),
        (
            {"settings": {"toy-qwen3": {"benchmarks": {"out": ["two-step"]}}}},
            "settings.toy-qwen3.benchmarks: 'two-step' is named as `in` and as `out`",
        ),
        ({"experiments": {"more": {"settings": ["toy-qwen3"]}}}, "experiments.more: neither methods nor sign_flips"),
        (
            {"experiments": {"injected-flips": {"injected_flips": {"exact": [0.3]}}}},
            "experiments.injected-flips.injected_flips.exact: 0.3 x",
        ),
        (
            {"experiments": {"injected-flips": {"injected_flips": {"bernoulli": [0.12345678]}}}},
            "experiments.injected-flips.injected_flips.bernoulli: 0.12345678 has too many digits",
        ),
        (
            {"experiments": {"sign-flips-trained": {"sign_flips": {"temperature": 0.5}}}},
            "experiments: sign_flips of toy-qwen3 have temperature=",
        ),
        ({"experiments": {"main": {"num_generations": []}}}, "experiments.main: methods and num_generations are"),
        (
            {"experiments": {"sign-flips": {"sign_flips": {"rollouts": 8}}}},
            "experiments.sign-flips.sign_flips: rollouts=8 is not above subset_sizes=[2, 4, 8]",
        ),
        (
            {"evaluation": {"vllm_max_model_length": 24}},
            "evaluation of three-step: vllm_max_model_length=24 leaves no room for a prompt beside max_new_tokens=30",
        ),
    ],
)
def test_what_is_not_there_or_does_not_go_together_is_named(change, message):
    assert refused(changed(MINI, change)).startswith(message)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", ["training.max_grad_norm", "training.learning_rate", "evaluation.temperature",
                                   "variants.odd.training.epsilon", "variants.odd.training.beta"])  # fmt: skip
def test_a_number_that_is_not_finite_is_refused_where_it_is_read(tmp_path, place, value):
    config = changed(MINI, {"variants": {"odd": {"training": {"beta": 0.1, "epsilon": 0.1}}}})
    *path, key = place.split(".")
    part = config
    for name in path:
        part = part[name]
    part[key] = value
    assert refused(config) == f"{place}: {value} is no finite number"
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(StudyError, match=place):
        read([tmp_path / "study.yaml"])


def test_a_study_that_measures_nothing_is_refused():
    main = {"settings": ["toy-qwen3"], "methods": ["grpo"], "num_generations": [2], "evaluate": []}
    assert refused({**MINI, "experiments": {"main": main}}).startswith("experiments: no training is evaluated and no")
