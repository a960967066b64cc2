"""What a study needs to know of the estimators it names, without importing torch or anybody's module.

A name is one of `mcgrpo.estimators.ESTIMATORS`, or `module:attribute`, somebody's own: the module is looked for in the
folder that the study is run in, then as `import` does.
"""

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from mcgrpo.records import Run
from mcgrpo.study import syntax
from mcgrpo.study.fingerprint import fingerprint

EXTRA_ROLLOUTS: dict[str, int] = {
    "mean-std": 0,
    "mean": 0,
    "median-mad": 1,
    "median": 1,
    "mean-std-plus1": 1,
    "batch-std": 0,
    "rloo": 0,
    "reinforce++": 0,
    "mean-mad": 0,
    "quantile-0.4": 0,
    "quantile-0.6": 0,
    "james-stein": 0,
    "opo": 0,
    "bnpo": 0,
    "batch-mean": 0,
    "sign": 0,
    "maxrl": 0,
    "pods": 8,
}
"""Extra rollouts of every built-in estimator, as in `mcgrpo.estimators.ESTIMATORS`; a test compares the two."""


def check_estimator(name: str) -> None:
    """Refuse an estimator that no training will find.

    Raises:
        ValueError: naming those there are, or what is missing of `module:attribute`.
    """
    module, colon, attribute = name.partition(":")
    if not colon:
        if name not in EXTRA_ROLLOUTS:
            there = ", ".join(EXTRA_ROLLOUTS)
            raise ValueError(f"unknown estimator {name!r}; there are: {there}, and module:attribute for your own")
        return
    path = _source(module)
    if path is None:
        raise ValueError(f"estimator {name!r}: no module {module!r} in {Path.cwd()} or on Python's path")
    if path.suffix == ".py" and not _may_bind(_tree(path, name), attribute):
        raise ValueError(f"estimator {name!r}: {path} has no {attribute!r}")


def training_code(estimator: str) -> str:
    """The fingerprint of training's code, with that of the module that an estimator of somebody's own is in.

    Modules that this one imports from its own folder count too; comments, docstrings and layout do not.
    """
    ours = fingerprint("mcgrpo.train")
    module, colon, _ = estimator.partition(":")
    path = _source(module) if colon else None
    if path is None:
        return ours
    digest = hashlib.sha256(ours.encode())
    for part in sorted(with_neighbours(path, estimator)):
        digest.update(syntax.read(_tree(part, estimator)).text.encode())
    return digest.hexdigest()[: len(ours)]


@cache
def extra_rollouts(name: str) -> int:
    """Rollouts that the estimator draws for each prompt beside G; imports torch and the module of somebody's own."""
    if name in EXTRA_ROLLOUTS:
        return EXTRA_ROLLOUTS[name]
    from mcgrpo.estimators import get_estimator

    return get_estimator(name).extra_rollouts


def planned_extra(run: Run) -> int | None:
    """Rollouts drawn for each prompt beside G: `extra_rollouts` of the run, or else of its estimator.

    None where only somebody's own estimator says how many: its module is not imported.
    """
    extra = run.training.get("extra_rollouts")
    return EXTRA_ROLLOUTS.get(run.estimator) if extra is None and run.estimator else extra or 0


def drawn(run: Run) -> int:
    """Rollouts drawn for each prompt: G, plus extra ones; imports the module of somebody's own estimator."""
    extra = planned_extra(run)
    return run.num_generations + (extra_rollouts(run.estimator) if extra is None else extra)


def _source(module: str) -> Path | None:
    """The file that a module would be imported from; None where there is none."""
    folders: list[str] | None = [str(Path.cwd()), *sys.path]
    spec = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, folders) if part and folders else None
        folders = list(spec.submodule_search_locations or ()) if spec else None
    return Path(spec.origin) if spec and spec.origin else None


def with_neighbours(path: Path, name: str) -> set[Path]:
    """The file of an estimator of somebody's own and those that it imports, directly or not.

    Of these, the ones beside it, and those of its package.

    Args:
        path: of the module.
        name: of the estimator, for errors.

    Raises:
        ValueError: for a file that is no Python, naming it.
    """
    package = name.split(":")[0].split(".")[0]
    reached, waiting = set(), [path]
    while waiting:
        if (file := waiting.pop()) not in reached and file.suffix == ".py":
            reached.add(file)
            imported = [*_imported(_tree(file, name))]
            found = [file.parent / f"{module}.py" for module in imported]
            found += [_source(module) for module in imported if module.startswith(f"{package}.")]
            waiting += [each for each in found if each and each.is_file()]
    return reached


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            yield from [node.module, *(f"{node.module}.{each}" for each in names)] if node.module else names


def _tree(path: Path, name: str) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ValueError(f"estimator {name!r}: {path}: {error}") from None


def _may_bind(tree: ast.Module, attribute: str) -> bool:
    """Whether the module binds the name anywhere, or takes all names of another one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == attribute:
            return True
        names = node.names if isinstance(node, ast.ImportFrom | ast.Import) else []
        if {alias.asname or alias.name for alias in names} & {attribute, "*"}:
            return True
    return False
