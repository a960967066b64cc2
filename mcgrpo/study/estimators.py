"""What a study needs to know of the estimators it names; torch is imported for somebody's own only.

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
from typing import Any

from mcgrpo.records import Run
from mcgrpo.study.fingerprint import fingerprint, text_of

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
USED_BY: dict[str, tuple[str, ...]] = {
    "mad_zero": ("median-mad", "mean-mad"),
    "advantage_epsilon": (
        "mean-std", "median-mad", "mean-std-plus1", "batch-std", "reinforce++", "mean-mad", "quantile-0.4",
        "quantile-0.6", "bnpo", "batch-mean", "maxrl", "pods",
    ),
}  # fmt: skip
"""Options of `training` that not every built-in estimator uses, and which do; a test compares them, too."""
UNSET = (None, "epsilon", 0.0)
"""Values of these options that estimators without them have."""
OPTIONS = {
    "extra_rollouts": "extra_rollouts",
    "advantage_epsilon": "epsilon",
    "mad_zero": "mad_zero",
    "max_advantage": "max_advantage",
}
"""Options of an estimator in `training`, and their names in `mcgrpo.estimators.estimate`."""
HIGHEST = {"accuracy": 2.0, "format": 1.0}
"""The largest value of each reward of `mcgrpo.grade.rewards`."""


def check_estimator(run: Run) -> None:
    """Refuse an estimator that training would fail with, and options that it does not use.

    One of somebody's own is imported, and tried on groups of the rewards of this run.

    Raises:
        ValueError: naming the key of `training`, the estimator and what is wrong.
    """
    if ":" in run.estimator:
        return _try_own(run)
    if run.estimator not in EXTRA_ROLLOUTS:
        raise ValueError(
            f"training.estimator: unknown estimator {run.estimator!r}; there are: {', '.join(EXTRA_ROLLOUTS)}, and "
            "module:attribute for your own"
        )
    for option, names in USED_BY.items():
        if (value := run.training.get(option)) not in UNSET and run.estimator not in names:
            raise ValueError(
                f"training.{option}: estimator {run.estimator!r} does not use {option}={value!r}; used by: "
                f"{', '.join(names)}"
            )


def options_of(run: Run) -> dict[str, Any]:
    """The options that a run gives its estimator, by their names in `mcgrpo.estimators.estimate`."""
    return {name: run.training[key] for key, name in OPTIONS.items() if run.training.get(key) is not None}


def _try_own(run: Run) -> None:
    """Estimate groups of every number of correct rollouts, one of them with a rollout that could not be scored."""
    import torch

    from mcgrpo.estimators import estimate

    try:
        size = drawn(run)
        highest = sum(weight * HIGHEST[name] for name, weight in run.rewards.items())
        rewards = highest * (torch.arange(size) < torch.arange(size + 1).unsqueeze(1)).float()
        rewards[1, -1] = torch.nan
        estimate(rewards, run.estimator, run.num_generations, lengths=torch.ones_like(rewards), **options_of(run))
    except Exception as error:  # of somebody's own code
        why = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"training.estimator: {run.estimator!r}, tried on small groups of rewards: {why}") from error


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
        digest.update(text_of(_tree(part, estimator)).encode())
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
