"""Which of our modules a stage imports, and a fingerprint of what they do.

Snakemake reruns a job when its declared params change. It cannot see imports behind `python -m`, and a file's time
or text changes with every checkout, comment and reformatting; so each rule declares the fingerprint of its stage:
the syntax trees, without docstrings, of the module and of all of ours that it imports.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
VIEWS = frozenset({"mcgrpo", "mcgrpo.tracking"})
"""Modules that cannot change what comes out: the package's front (a version), and what a stage tells how it goes."""


def _path(module: str) -> Path | None:
    place = ROOT.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@cache
def _tree(module: str) -> ast.Module:
    path = _path(module)
    if path is None:
        raise ValueError(f"no module {module!r} below {ROOT}")
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(module: str) -> Iterator[str]:
    """Modules of ours that a module imports, at its top or in a function, and the packages they are in."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{_path(module)}:{node.lineno}: relative imports are not followed")
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        ours = [name.split(".") for name in names if name.split(".")[0] == "mcgrpo" and _path(name) is not None]
        yield from (".".join(parts[:depth]) for parts in ours for depth in range(1, len(parts) + 1))


def closure(stage: str) -> list[str]:
    """The stage and every module of ours that it reaches, views left out, sorted."""
    found, waiting = set(), [stage]
    while waiting:
        module = waiting.pop()
        if module not in found and module not in VIEWS:
            found.add(module)
            waiting += _imports(module)
    return sorted(found)


@cache
def fingerprint(stage: str) -> str:
    """A hash that changes when what a stage does may have changed; not with comments, docstrings or layout."""
    digest = hashlib.sha256()
    for module in closure(stage):
        digest.update(module.encode())
        digest.update(ast.dump(_without_docstrings(_tree(module))).encode())
    return digest.hexdigest()[:16]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    """The tree less every statement that is a bare string (docstrings, and strings that document a constant)."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)] or [ast.Pass()]
    return tree


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
