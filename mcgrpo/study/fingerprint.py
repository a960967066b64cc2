"""What a stage runs of our code, and a fingerprint of it.

Snakemake reruns a job when its declared params change. It cannot see imports behind `python -m`, and a file's time
or text changes with every checkout, comment and reformatting; so each rule declares the fingerprint of its stage: the
syntax trees, without docstrings, of the stage's module and of every top-level definition of ours that it reaches. A
record, an estimator or a helper that the stage does not use is not part of it.
"""

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mcgrpo.study import syntax

ROOT = Path(__file__).parents[2]
VIEWS = frozenset({"mcgrpo"})
"""Modules that cannot change what comes out: the package's front, a version."""


@cache
def _path(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@cache
def _tree(module: str) -> ast.Module:
    path = _path(module)
    if path is None:
        raise ValueError(f"no module {module!r} below {ROOT}")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not syntax.is_text(node)]
    return tree


def _imported(module: str, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str | None]]:
    """(module, name) of everything of ours that an import statement takes; the name None for a module as a whole."""
    if isinstance(node, ast.Import):
        parts = [(alias.name, None) for alias in node.names]
    elif node.level:
        raise ValueError(f"{_path(module)}:{node.lineno}: relative imports are not followed")
    else:
        names = [(f"{node.module}.{alias.name}", alias.name) for alias in node.names]
        parts = [(whole, None) if _ours(whole) else (node.module or "", name) for whole, name in names]
    yield from (part for part in parts if _ours(part[0]))


def _ours(module: str) -> bool:
    return module.split(".")[0] == "mcgrpo" and _path(module) is not None


def main_module(stage: str) -> str:
    """What `python -m` runs of a stage: itself, or a package's `__main__`."""
    return f"{stage}.__main__" if _path(f"{stage}.__main__") else stage


def closure(stage: str) -> list[str]:
    """What a stage runs and every module of ours that it imports, directly or not, views left out, sorted."""
    reached, waiting = set(), _with_packages(main_module(stage))
    while waiting:
        module = waiting.pop()
        if module not in reached and module not in VIEWS:
            reached.add(module)
            waiting += _imports(module)
    return sorted(reached)


@cache
def _imports(module: str) -> set[str]:
    """Modules of ours that a module imports, at its top or in a function, and the packages they are in."""
    nodes = [node for index in range(len(_tree(module).body)) for node in _code(module, index).imports]
    names = {name for node in nodes for name, _ in _imported(module, node)}
    return {part for name in names for part in _with_packages(name)}


def _with_packages(module: str) -> list[str]:
    """The packages that a module is in, from the outermost, and the module itself."""
    parts = module.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


@cache
def fingerprint(stage: str) -> str:
    """A hash that changes when what a stage does may have changed; not with comments, docstrings or layout.

    Raises:
        ValueError: for a stage that is no module of ours, or that runs nothing: it would never be rerun.
    """
    reached = _reached(main_module(stage))
    if not reached:
        raise ValueError(f"{stage} runs nothing: no statement in {_path(stage)}")
    digest = hashlib.sha256()
    for module, statements in sorted(reached.items()):
        digest.update(module.encode())
        for index in sorted(statements):
            digest.update(_code(module, index).text.encode())
    return digest.hexdigest()[:16]


@cache
def _code(module: str, index: int) -> syntax.Code:
    return syntax.read(_tree(module).body[index])


def _reached(stage: str) -> dict[str, set[int]]:
    """Module -> indices of the top-level statements that the stage runs or uses.

    Those are all of the stage's own, what they name (wherever in them: a local name that is also a top-level one
    counts), and in every imported module whatever is no definition, since it runs at import.
    """
    reached: dict[str, set[int]] = defaultdict(set)
    waiting = [(stage, index) for index in range(len(_tree(stage).body))]
    waiting += [(module, index) for module in closure(stage) for index in _definitions(module)[""]]
    while waiting:
        module, index = waiting.pop()
        if module in VIEWS or index in reached[module]:
            continue
        reached[module].add(index)
        waiting += _needed(module, index)
    return reached


@cache
def _needed(module: str, index: int) -> list[tuple[str, int]]:
    """(module, index) of every top-level statement that one of them names or imports from."""
    code = _code(module, index)
    needed = {(module, each) for name in code.names for each in _definitions(module).get(name, ())}
    for imported, name in (part for node in code.imports for part in _imported(module, node)):
        everything = range(len(_tree(imported).body))
        needed |= {(imported, each) for each in (_definitions(imported)[name] if name else everything)}
    return sorted(needed)


@cache
def _definitions(module: str) -> dict[str, list[int]]:
    """Top-level name -> indices of the statements that bind it; under "" those that bind none but run at import."""
    definitions: dict[str, list[int]] = defaultdict(list)
    for index, node in enumerate(_tree(module).body):
        for name in _bound(node):
            definitions[name].append(index)
    return definitions


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = [part for target in targets if target is not None for part in _flat(target)]
    return names if isinstance(node, ast.Assign | ast.AnnAssign) and all(names) else [""]


def _flat(target: ast.expr) -> list[str]:
    """The names in an assignment's target; "" for an attribute or an item."""
    if isinstance(target, ast.Tuple | ast.List):
        return [name for part in target.elts for name in _flat(part)]
    return [target.id if isinstance(target, ast.Name) else ""]
