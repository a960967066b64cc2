"""What a stage runs of our code, and a fingerprint of it.

Snakemake reruns a job when its declared params change. It cannot see imports behind `python -m`, and a file's time
changes with every checkout; so each rule declares the fingerprint of its stage: a hash of the stage's module and of
every module of ours that it imports, without comments, docstrings and layout.
"""

import ast
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WITHOUT_RESULTS = re.compile(r"mcgrpo|mcgrpo\.launch(\..*)?")
"""Modules that cannot change what comes out: the package's front, and how a job is started."""


def fingerprint(stage: str, *parts: str) -> str:
    """A hash that changes when what a stage does may have changed.

    Args:
        stage: a module of ours.
        parts: names of estimators, tasks and prompts that it runs. The module of a user-defined one counts too, and
            what this imports from the working directory, or from `sys.path` outside of Python's own folders.

    Raises:
        ValueError: for a stage that is no module of ours.
    """
    user_defined = sorted({module for module, colon, _ in (part.partition(":") for part in parts) if colon})
    found = {name: code for module in user_defined for name, code in closure(module, own=True).items()}
    return _digest({"ours": of_ours(stage), **found}) if user_defined else of_ours(stage)


@cache
def of_ours(stage: str) -> str:
    """The fingerprint of a stage's own code."""
    if not (found := closure(stage)):
        raise ValueError(f"no module {stage!r} below {ROOT}")
    return _digest(found)


def closure(stage: str, own: bool = False) -> dict[str, str]:
    """What `python -m` runs of a stage, and every module that it imports, directly or not: name -> code, sorted.

    Args:
        stage: a module.
        own: whether user-defined modules are meant, or those of ours.
    """
    reached: dict[str, str] = {}
    waiting, seen = [f"{stage}.__main__" if _path(f"{stage}.__main__", own) else stage], set[str]()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        if WITHOUT_RESULTS.fullmatch(module):
            continue
        if not (path := _path(module, own)):
            package, _, name = module.rpartition(".")
            waiting += _on_first_use(package).get(name, [])
            continue
        reached[module], imported = _parsed(path.read_text(encoding="utf-8"))
        parent = module.rpartition(".")[0]
        package = module if path.name == "__init__.py" else parent
        waiting += [parent, *(resolve_name(name, package) for name in imported)]
    return dict(sorted(reached.items()))


def _digest(found: Mapping[str, str]) -> str:
    text = "".join(f"{module}\n{code}\n" for module, code in found.items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _parsed(source: str) -> tuple[str, list[str]]:
    """The code of a module without its docstrings, and the names that it may import, at its top or in a function."""
    tree = ast.parse(source)
    imported = set()
    for node in ast.walk(tree):
        imported.update(_imported(node))
        if isinstance(statements := getattr(node, "body", None), list):
            node.body = [each for each in statements if not _is_string(each)]
    return _told(tree), sorted(imported)


def _told(node: Any) -> str:
    """As `ast.dump`, without empty fields: which there are depends on the version of Python."""
    if isinstance(node, list):
        return f"[{', '.join(map(_told, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = (f"{name}={_told(value)}" for name, value in ast.iter_fields(node) if value is not None and value != [])
    return f"{type(node).__name__}({', '.join(fields)})"


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = "." * node.level + (node.module or "")
        yield from [base, *(f"{base}{'.' if node.module else ''}{alias.name}" for alias in node.names)]


def _path(module: str, own: bool) -> Path | None:
    """The file of a module of ours, or of a user-defined one; None of another."""
    if (module.partition(".")[0] == "mcgrpo") == own:
        return None
    roots = _roots() if own else [str(ROOT)]
    place = module.replace(".", "/")
    files = (f"{root}/{place}{end}" for root in roots for end in (".py", "/__init__.py"))
    # Some thousand names are looked up before a study starts: a `Path` of each would take half a second.
    return next((Path(file) for file in files if os.path.isfile(file)), None)  # noqa: PTH113


@cache
def _on_first_use(package: str) -> dict[str, list[str]]:
    """Name -> the module that a package of ours imports it from once it is used, as `__init__.pyi` says."""
    stub = ROOT.joinpath(*package.split("."), "__init__.pyi")
    if not (package.startswith("mcgrpo") and stub.is_file()):
        return {}
    imports = [node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: [node.module] for node in imports if node.module for alias in node.names}


def _roots() -> list[str]:
    """The folders that hold user-defined modules."""
    pythons = (sys.prefix, sys.base_prefix)
    others = [folder for folder in sys.path if not any(map(Path(folder).is_relative_to, pythons))]
    return [str(Path(folder)) for folder in (Path.cwd(), *others)]
