"""The packages of mcgrpo, and which may import which: read from the import statements, also those within functions."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "mcgrpo"

LAYERS = (
    # one record per file; reading, writing; data files; what `module:attribute` names
    ("records", "files", "shipped", "user_defined"),
    ("sums", "command_line"),  # checksums of files; parsers, errors in a line
    ("estimators",),  # library: rewards -> advantages and kept rows
    ("trainer", "engines"),  # library: TRL's GRPOTrainer with these estimators; adapters for other engines
    ("grade",),  # the tasks and their grader
    ("study", "launch"),  # a study file and its expansion; how a job is started
    ("data", "analyse", "rewards"),  # stages: data sets and models; scores and summaries. The grader's public name
    ("tracking",),  # MLflow as a view of the files
    ("train", "generate", "report"),  # stages: a training job; completions; tables, figures, claims
    ("commands",),  # doctor, plan, evidence
    ("cli",),  # `mcgrpo COMMAND`
)
"""A package or module imports itself and those of the lines above its own, so that there is no circle."""

LIBRARY = {"estimators": {"user_defined"}, "trainer": {"estimators"}, "engines": {"estimators"}}
"""What the library imports of ours: it can be used without the study."""
ENGINES = {"skyrl": {"skyrl"}, "slime": set(), "verl": {"verl"}, "verl_trainers": {"verl"}}
"""Each adapter, and what it imports of the engines."""

RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
FILES = {path: path.relative_to(ROOT).with_suffix("").parts[0] for path in sorted(ROOT.rglob("*.py"))}
"""Every file of ours, and the package or module that it belongs to."""


def imported(source):
    """What a text imports, anywhere in it, by its full name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "mcgrpo.(relative)" if node.level else node.module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def of_ours(source):
    """Packages and modules of mcgrpo that a text imports."""
    return {name.split(".")[1] for name in imported(source) if name.startswith("mcgrpo.")}


def named(source):
    """The same of modules that a text names whole in a string, as `import_module` takes them."""
    strings = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    modules = (text for text in strings if isinstance(text, str) and re.fullmatch(r"mcgrpo(\.\w+)+", text))
    return {module.split(".")[1] for module in modules}


def test_every_package_and_module_has_its_place():
    there = {name for name in FILES.values() if name != "__init__"}
    assert there == set(RANK) and len(RANK) == sum(map(len, LAYERS))


def test_imports_go_one_way():
    against = [
        f"{path.relative_to(ROOT)} imports {other}"
        for path, own in FILES.items()
        for other in of_ours(path.read_text(encoding="utf-8"))
        if other != own and RANK.get(other, len(LAYERS)) >= RANK.get(own, len(LAYERS))
    ]
    assert not against


@pytest.mark.parametrize("package", LIBRARY)
def test_the_library_imports_nothing_of_the_study(package):
    texts = {path: path.read_text(encoding="utf-8") for path, own in FILES.items() if own == package}
    reached = {path.relative_to(ROOT): (of_ours(text) | named(text)) - {package} for path, text in texts.items()}
    assert len(reached) > 3 and set().union(*reached.values()) <= LIBRARY[package], reached


def test_an_adapter_imports_no_engine_but_its_own():
    engines = {"skyrl", "slime", "transformers", "trl", "verl", "vllm"}
    reached = {}
    for path in (ROOT / "engines").glob("[!_]*.py"):
        reached[path.stem] = engines & {name.split(".")[0] for name in imported(path.read_text(encoding="utf-8"))}
    assert reached == ENGINES


def test_the_tree_of_files_has_each_and_no_other():
    tree = re.search(r"^```text\n(.*?)^```$", (ROOT.parent / "CONTRIBUTING.md").read_text("utf-8"), re.M | re.S)[1]
    folders, listed = [], []
    for line in tree.splitlines():
        name = line.split()[0]
        folders = [*folders[: (len(line) - len(line.lstrip())) // 2], name]
        listed.append(ROOT.parent.joinpath(*folders))
        assert listed[-1].is_dir() if name.endswith("/") else listed[-1].is_file(), line
    ours = [path.parent if path.name == "__init__.py" else path for path in FILES]
    assert sorted(path for path in listed if path.is_relative_to(ROOT)) == sorted(ours)
