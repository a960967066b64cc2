import ast
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcgrpo.report.catalogue import FIGURES, stages
from mcgrpo.study import fingerprint as closure
from mcgrpo.study import syntax

ROOT = Path(__file__).parents[2]
STAGES = (
    "data.models",
    "data",
    "train",
    "generate",
    "grade",
    "analyse.collect",
    "analyse.summarise",
    "analyse.contrasts",
    "report.tables",
    "report.tables.signal",
    "report.figures",
    "report.page",
    "analyse.sign_flips",
    "analyse.signals",
    "study.check",
    "data.audit",
    "data.overlap",
)

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
            extras = ("vllm", "deepspeed")
            if isinstance(node, ast.Import | ast.ImportFrom) and not any(name in ast.unparse(node) for name in extras):
                before = list(sys.modules)
                exec(compile(ast.Module([node], []), "lazy", "exec"), {})
                new = list(sys.modules)[len(before):]
                waiting += [name for name in new if name.split(".")[0] == "mcgrpo"]
    return ours()

assert not ours()
with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as stages:  # a process of its own for each
    print(json.dumps(dict(zip(sys.argv[1:], stages.map(loaded, sys.argv[1:], chunksize=1)))))
"""


PARSED_ONCE = SimpleNamespace(**{**vars(ast), "parse": cache(ast.parse)})
READ_ONCE = SimpleNamespace(**{**vars(syntax), "read": cache(syntax.read)})


@pytest.fixture(scope="module")
def before():
    """The fingerprint of training, here; that of any copy is the same."""
    return closure.fingerprint("mcgrpo.train")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package that a test may change; returns its folder. Equal files are parsed once."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mcgrpo", tmp_path / "mcgrpo", ignore=ignored, copy_function=shutil.copyfile)
    monkeypatch.setattr(closure, "ROOT", tmp_path)
    monkeypatch.setattr(closure, "ast", PARSED_ONCE)
    monkeypatch.setattr(closure, "syntax", READ_ONCE)
    forget()
    yield tmp_path / "mcgrpo"
    forget()


def forget():
    for cached in ("_path", "_tree", "_definitions", "_imports", "_needed", "_code", "fingerprint"):
        getattr(closure, cached).cache_clear()


def fingerprint_after(path, *changes):
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    forget()
    return closure.fingerprint("mcgrpo.train")


@pytest.fixture(scope="module")
def loaded():
    """Module of a stage -> our modules that are loaded with it."""
    modules = [closure.main_module(f"mcgrpo.{stage}") for stage in STAGES]
    done = subprocess.run([sys.executable, "-c", LOADED, *modules], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_the_closure_holds_every_module_that_is_loaded(loaded, stage):
    module = closure.main_module(f"mcgrpo.{stage}")
    assert module in loaded[module]
    seen = {*loaded[module]} - closure.VIEWS
    assert seen <= set(closure.closure(f"mcgrpo.{stage}"))


def test_the_closure_of_training_is_small():
    found = {module.removeprefix("mcgrpo.") for module in closure.closure("mcgrpo.train")}
    graders = {"grade.rewards", "grade.answers", "grade.verify_worker", "grade.math_grader"}
    assert {"train.job", "trainer.trainer", "estimators", "data.prompts", *graders} <= found
    views = {"report", "analyse", "study.check", "study.plan", "tracking", "generate", "grade.completions", "data.toy"}
    assert not found & views
    assert {"mcgrpo.data.toy", "mcgrpo.data.toy.models", "mcgrpo.data.toy.task"} <= set(
        closure.closure("mcgrpo.data.models")
    )


def test_no_audit_and_no_grader_makes_data_or_models_anew():
    """Whatever is made from them, trained models too, would be made anew as well."""
    inputs = {*closure.closure("mcgrpo.data"), *closure.closure("mcgrpo.data.models")}
    assert "mcgrpo.study.hub" in inputs
    assert not inputs & {
        f"mcgrpo.{name}"
        for name in (
            "data.audit",
            "data.overlap",
            "grade.completions",
            "grade.answers",
            "grade.math_grader",
            "grade.verifier",
        )
    }


def test_no_toy_makes_a_model_of_the_hub_anew():
    assert not [name for name in closure.closure("mcgrpo.data.fetch") if name.startswith("mcgrpo.data.toy")]
    assert "mcgrpo.data.fetch" in closure.closure("mcgrpo.data.models")


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
    ("file", "changes"),
    [
        ("trainer/trainer.py", [("class MCGRPOTrainer", "# a comment\n\nclass MCGRPOTrainer")]),
        ("records.py", [('"""The contract:', '"""This is the contract:')]),
        ("analyse/records.py", [("    planned: int", "    planned: float")]),  # summary.csv
        ("files.py", [("lineterminator=", "delimiter=';', lineterminator=")]),  # CSV
        ("grade/answers.py", [('"""Maximum length of', '"""The largest length of')]),
        ("data/prompts.py", [("import hashlib\n", "import hashlib\n\n\n\n")]),
        ("train/job.py", [('{"status": "running", ', "{'status':\n'running', ")]),
        ("report/tables/write.py", [("import pandas as pd", "import os\nimport pandas as pd")]),
        ("report/figures/facets.py", [("WIDE, TALL = 6.75, 9.0", "WIDE, TALL = 6.0, 9.0")]),
        ("__init__.py", [("0.1.0", "0.2.0")]),
    ],
)
def test_cosmetic_edits_and_views_leave_the_fingerprint(before, package, file, changes):
    assert fingerprint_after(package / file, *changes) == before


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("grade/answers.py", ("MAX_EXTRACTED = 500", "MAX_EXTRACTED = 501")),
        ("records.py", ("    num_generations: int\n    variant: str\n    seed: int\n    model: str", "    model: str")),
        ("files.py", ("temporary.replace(path)", "temporary.rename(path)")),
        ("estimators/statistics.py", ("torch.isnan(rewards)", "~torch.isfinite(rewards)")),
        ("grade/rewards.py", ('"equivalent": 1.5', '"equivalent": 1.0')),
        ("data/prompts.py", ("The user asks a question", "A user asks a question")),
        ("train/arguments.py", ('"gradient_checkpointing": False', '"gradient_checkpointing": True')),
    ],
)
def test_a_changed_constant_changes_the_fingerprint(before, package, file, change):
    assert fingerprint_after(package / file, change) != before


@pytest.mark.parametrize(
    ("file", "change", "redrawn"),
    [
        ("latency.py", ("BUDGET = 4", "BUDGET = 2"), {"latency"}),
        ("flips.py", ("2.05", "2.15"), {"sign-flips", "injected-flips"}),
        ("facets.py", ("WIDE, TALL = 6.75, 9.0", "WIDE, TALL = 6.0, 9.0"), set(FIGURES)),
    ],
)
def test_a_change_of_a_figure_redraws_what_uses_it(package, file, change, redrawn):
    def codes():
        forget()
        return {name: [closure.fingerprint(stage) for stage in stages(name)] for name in FIGURES}

    before, path = codes(), package / "report/figures" / file
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    after = codes()
    assert {name for name in FIGURES if before[name] != after[name]} == redrawn


def test_the_fingerprint_is_that_of_any_checkout_and_process(before, package):
    code = "from mcgrpo.study.fingerprint import fingerprint; print(fingerprint('mcgrpo.train'))"
    here = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert closure.fingerprint("mcgrpo.train") == before == here


def test_a_stage_that_runs_nothing_is_refused(package):
    (package / "empty").mkdir()
    (package / "empty/__init__.py").write_text('"""A package without a main module."""\n')
    with pytest.raises(ValueError, match=r"mcgrpo\.empty runs nothing"):
        closure.fingerprint("mcgrpo.empty")
    assert closure.main_module("mcgrpo.train") == "mcgrpo.train.__main__"


def test_what_cannot_be_followed_is_refused(package):
    with pytest.raises(ValueError, match=r"no module 'mcgrpo\.nothing'"):
        closure.closure("mcgrpo.nothing")
    (package / "odd.py").write_text("from .records import Run\n")
    with pytest.raises(ValueError, match=r"odd\.py:1: relative imports are not followed"):
        closure.closure("mcgrpo.odd")


SMALL = {
    "stage.py": "import os\nfrom mcgrpo.lib import wanted\n\ndef main():\n    return wanted()\n",
    "lib.py": (
        "import os\nos.environ.setdefault('A', '1')\nLIMIT, OTHER = 5, 6\n\n"
        "def helper() -> 'Kind':\n    return LIMIT\n\n"
        "class Kind: ...\n\ndef wanted():\n    return helper()\n\ndef unwanted():\n    return 1\n"
    ),
}


@pytest.mark.parametrize(
    ("file", "change", "counts"),
    [
        ("lib.py", ("return 1", "return 2"), False),
        ("lib.py", ("return helper()", "return -helper()"), True),
        ("lib.py", ("LIMIT, OTHER = 5, 6", "LIMIT, OTHER = 5, 7"), True),  # one statement binds both
        ("lib.py", ("class Kind: ...", "class Kind: size = 1"), True),  # named in quotes
        ("lib.py", ("'A', '1'", "'A', '2'"), True),  # runs at import
        ("stage.py", ("return wanted()", "return -wanted()"), True),
    ],
)
def test_only_what_a_stage_reaches_counts(package, file, change, counts):
    for name, text in SMALL.items():
        (package / name).write_text(text)
    forget()
    before = closure.fingerprint("mcgrpo.stage")
    (package / file).write_text(SMALL[file].replace(*change))
    forget()
    assert (closure.fingerprint("mcgrpo.stage") != before) == counts
