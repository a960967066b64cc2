"""What a stage runs of our code, and a fingerprint of it.

Snakemake reruns a job when its declared params change. It cannot see imports behind `python -m`, and a file's time
changes with every checkout; so each rule declares the fingerprint of its stage: a hash of the stage's module and of
every module of ours that it imports, without comments, docstrings and layout.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
VIEWS = frozenset({"mcgrpo"})
"""Modules that cannot change what comes out: the package's front, a version."""
SKIPPED = frozenset({"ctx", "type_comment", "kind"})
"""Fields of a syntax tree that follow from where a node stands, or that change nothing."""


@cache
def fingerprint(stage: str) -> str:
    """A hash that changes when what a stage does may have changed.

    Raises:
        ValueError: for a stage that is no module of ours.
    """
    digest = hashlib.sha256()
    for module in closure(stage):
        digest.update(f"{module}\n{_text_of_module(module)}\n".encode())
    return digest.hexdigest()[:16]


def closure(stage: str) -> list[str]:
    """What `python -m` runs of a stage and every module of ours that it imports, directly or not, sorted."""
    reached: set[str] = set()
    waiting = [f"{stage}.__main__" if _path(f"{stage}.__main__") else stage]
    while waiting:
        module = waiting.pop()
        if module not in reached and module not in VIEWS:
            reached.add(module)
            waiting += [module.rpartition(".")[0], *_imports(module)]
    return sorted(reached)


def text_of(node: ast.AST) -> str:
    """Code as one text: unlike `ast.dump`, the same in every version of Python, and without docstrings."""
    parts = []
    for name in node._fields:
        value = getattr(node, name, None)
        values = [each for each in (value if isinstance(value, list) else [value]) if not is_docstring(each)]
        if value is not None and values and name not in SKIPPED:
            texts = (text_of(each) if isinstance(each, ast.AST) else repr(each) for each in values)
            parts.append(f"{name}={','.join(texts)}")
    return f"{type(node).__name__}({';'.join(parts)})"


def is_docstring(node: object) -> bool:
    """Whether a statement is a bare string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def _text_of_module(module: str) -> str:
    return text_of(_tree(module))


@cache
def _imports(module: str) -> list[str]:
    return sorted({name for node in ast.walk(_tree(module)) for name in _imported(module, node)})


def _imported(module: str, node: ast.AST) -> Iterator[str]:
    """The modules of ours that a statement imports, at a module's top or in a function."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if _path(alias.name))
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            raise ValueError(f"{_path(module)}:{node.lineno}: relative imports are not followed")
        for name in (f"{node.module}.{alias.name}" for alias in node.names):
            yield from filter(_path, [name if _path(name) else node.module or ""])


@cache
def _tree(module: str) -> ast.Module:
    path = _path(module)
    if path is None:
        raise ValueError(f"no module {module!r} below {ROOT}")
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _path(module: str) -> Path | None:
    """The file of a module of ours; None of another."""
    base = ROOT.joinpath(*module.split("."))
    files = (base.with_suffix(".py"), base / "__init__.py") if module.startswith("mcgrpo") else ()
    return next((path for path in files if path.is_file()), None)
