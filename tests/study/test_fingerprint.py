import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mcgrpo
from mcgrpo.study import fingerprint as closure

ROOT = Path(__file__).parents[2]
RULES = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
STAGES = sorted({*re.findall(r'"mcgrpo\.([\w.]+)"', RULES)})
"""Those that rules take the fingerprint of."""

LOADED = """
import ast, gc, importlib, json, multiprocessing, sys
from pathlib import Path
gc.disable()
import datasets, math_verify, mlflow, pandas, peft, seaborn, torch, transformers, trl  # once for all stages

def ours():
    return sorted(name for name in sys.modules if name.split(".")[0] == "mcgrpo")

def loaded(module):
    importlib.import_module(module)
    waiting = ours()
    while waiting:  # what they import within functions too, by running those very statements
        for node in ast.walk(ast.parse(Path(sys.modules[waiting.pop()].__file__).read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom) and "vllm" not in ast.unparse(node):
                before = list(sys.modules)
                exec(compile(ast.Module([node], []), "lazy", "exec"), {})
                new = list(sys.modules)[len(before):]
                waiting += [name for name in new if name.split(".")[0] == "mcgrpo"]
    return ours()

assert not ours()
with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as stages:  # a process of its own for each
    print(json.dumps(dict(zip(sys.argv[1:], stages.map(loaded, sys.argv[1:], chunksize=1)))))
"""


@pytest.fixture(scope="module")
def before():
    """The fingerprint of training, here; that of any copy is the same."""
    return closure.fingerprint("mcgrpo.train")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package that a test may change; returns its folder."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mcgrpo", tmp_path / "mcgrpo", ignore=ignored, copy_function=shutil.copyfile)
    monkeypatch.setattr(closure, "ROOT", tmp_path)
    closure.of_ours.cache_clear()
    yield tmp_path / "mcgrpo"
    closure.of_ours.cache_clear()


def main_module(stage):
    """What `python -m` runs of a stage."""
    package = (ROOT / "mcgrpo").joinpath(*stage.split("."))
    return f"mcgrpo.{stage}.__main__" if (package / "__main__.py").is_file() else f"mcgrpo.{stage}"


@pytest.fixture(scope="module")
def loaded():
    """Module of a stage -> our modules that are loaded with it."""
    modules = list(map(main_module, STAGES))
    done = subprocess.run([sys.executable, "-c", LOADED, *modules], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_the_closure_holds_every_module_that_is_loaded(loaded, stage):
    module = main_module(stage)
    assert module in loaded[module]
    seen = {each for each in loaded[module] if not closure.WITHOUT_RESULTS.fullmatch(each)}
    assert seen <= set(closure.closure(f"mcgrpo.{stage}"))


OF_REWARDS = ("rewards", "task", "tasks.gsm8k", "verify_worker", "math_grader")
ANALYSIS = {"report", "analyse", "study.plan", "tracking"}
GRADERS = {"grade.completions", "grade.task", "grade.tasks.gsm8k", "grade.math_grader", "grade.verifier"}


@pytest.mark.parametrize(
    ("stage", "needed", "others"),
    [
        (
            "train",
            {"train.job", "trainer.trainer", "estimators", "data.prompts", *(f"grade.{name}" for name in OF_REWARDS)},
            {*ANALYSIS, "study.check", "generate", "grade.completions", "data.toy", "launch.gpus"},
        ),
        ("data", {"study.hub"}, {"data.audit", "data.overlap", *GRADERS}),
        ("data.models", {"data.toy.models", "data.toy.task", "data.fetch"}, {"data.audit", "data.overlap", *GRADERS}),
        ("data.fetch", set(), {"data.toy", "data.toy.models"}),
    ],
)
def test_the_closure_is_small(stage, needed, others):
    """What is made from data or a model, trained models too, would be made anew with it."""
    found = {module.removeprefix("mcgrpo.") for module in closure.closure(f"mcgrpo.{stage}")}
    assert needed <= found and not found & others


def test_no_stage_imports_tracking():
    """Files are the truth: a training, say, never calls MLflow."""
    others = [
        path
        for path in (ROOT / "mcgrpo").rglob("*.py")
        if not {ROOT / "mcgrpo/tracking", ROOT / "mcgrpo/commands"} & {*path.parents}
    ]
    taken = re.compile(r"^ *(from mcgrpo import tracking|(from|import) (mcgrpo\.tracking|mlflow)).*$", re.MULTILINE)
    assert [path.stem for path in others if taken.search(path.read_text())] == []


@pytest.mark.parametrize(
    ("file", "old", "new", "trains_anew"),
    [
        ("trainer/trainer.py", "class MCGRPOTrainer", "# a comment\n\nclass MCGRPOTrainer", False),
        ("records.py", '"""The contract:', '"""This is the contract:', False),
        ("train/job.py", '    outcome = Outcome(\n        "running",', "    outcome = Outcome('running',", False),
        ("analyse/records.py", "planned: int", "planned: float", False),
        ("__init__.py", f'"{mcgrpo.__version__}"', '"9.9.9"', False),
        ("grade/task.py", "MAX_EXTRACTED = 500", "MAX_EXTRACTED = 501", True),
        ("estimators/statistics.py", "torch.isnan(rewards)", "~torch.isfinite(rewards)", True),
        ("grade/prompts.py", "The user asks a question", "A user asks a question", True),
        ("train/arguments.py", '"gradient_checkpointing": False', '"gradient_checkpointing": True', True),
    ],
)
def test_it_changes_with_the_code_that_a_stage_runs_alone(before, package, file, old, new, trains_anew):
    """Not with comments, docstrings, layout, the version or other stages."""
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new))
    assert (closure.fingerprint("mcgrpo.train") != before) == trains_anew


def test_fields_that_some_versions_of_python_leave_out_do_not_count():
    """From 3.12 on a function has `type_params`; a syntax tree may also lack what is empty."""
    tree = ast.parse("def f(): return None")
    told = closure._told(tree)
    tree.body[0]._fields = (*tree.body[0]._fields, "type_params")
    tree.body[0].type_params = []
    assert closure._told(tree) == told and "type_params" not in told


def test_the_fingerprint_is_that_of_any_checkout_and_process(before, package):
    code = "from mcgrpo.study.fingerprint import fingerprint; print(fingerprint('mcgrpo.train'))"
    here = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert closure.fingerprint("mcgrpo.train") == before == here


def test_a_stage_that_is_not_there_is_refused(package):
    with pytest.raises(ValueError, match=r"no module 'mcgrpo\.nothing'"):
        closure.fingerprint("mcgrpo.nothing")
