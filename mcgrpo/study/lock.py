"""Pin what a study takes from the hub: `python -m mcgrpo.study.lock config/config.yaml`.

Writes the commit of every model and data set that the study file does not pin itself to a lock file beside it
(`config/config.lock.yaml`), which every later call of the workflow applies.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mcgrpo import command_line
from mcgrpo.files import write_text
from mcgrpo.study.check import StudyError, load
from mcgrpo.study.hub import COMMIT, HubError, commit, is_pinned

Commits = dict[str, dict[str, dict[str, str]]]
"""Kind (`models`, `datasets`) -> name in the study -> its `hub`, its `revision` if it has one, and their `commit`."""


def lock_file(study: str | Path) -> Path:
    """Where the lock of a study file is."""
    return Path(study).with_suffix(".lock.yaml")


def unpinned(config: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(kind, name, spec) of everything from the hub whose revision is not a commit."""
    for kind in ("models", "datasets"):
        for name, spec in (config.get(kind) or {}).items():
            if isinstance(spec, dict) and "hub" in spec and not is_pinned(spec):
                yield kind, name, spec


def pin(config: dict[str, Any], commits: Commits) -> None:
    """Put the commits of a lock file in the place of revisions that are none, in place.

    Not those of another repository or revision than the study now has.
    """
    for kind, name, spec in unpinned(config):
        locked = commits.get(kind, {}).get(name, {})
        if locked.items() >= _asked(spec).items() and locked.keys() == {*_asked(spec), "commit"}:
            spec["revision"] = locked["commit"]


def _asked(spec: dict[str, Any]) -> dict[str, str]:
    """What a commit is looked up by."""
    return {key: spec[key] for key in ("hub", "revision") if key in spec}


def read_lock(path: Path) -> Commits:
    """The commits of a lock file; none where there is no file.

    Raises:
        StudyError: for a file that holds anything else.
    """
    locked = load(path) if path.is_file() else {}
    for kind, names in locked.items():
        for name, found in names.items() if isinstance(names, dict) else [("", names)]:
            if not (isinstance(found, dict) and "hub" in found and COMMIT.fullmatch(str(found.get("commit")))):
                raise StudyError(f"{path}: {kind}.{name}: {found!r} is not a hub and a commit of 40 hexadecimal digits")
    return locked


def look_up(config: dict[str, Any]) -> Commits:
    """What the hub says now for everything that is not pinned in the study file.

    Raises:
        HubError: where it cannot be asked or does not know one.
    """
    commits: Commits = {}
    for kind, name, spec in unpinned(config):
        commits.setdefault(kind, {})[name] = {**_asked(spec), "commit": commit(kind, spec)}
    return commits


def main() -> None:
    """Write the lock file of a study."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("study", type=Path, help="a study file, such as config/config.yaml")
    study = parser.parse_args().study
    try:
        commits = look_up(load(study))
    except StudyError as error:
        sys.exit(f"error: {error}")
    except HubError as error:
        sys.exit(f"error: the hub did not answer, nothing was written: {error}")
    write_text(lock_file(study), yaml.safe_dump(commits))
    print(f"{lock_file(study)}: {sum(map(len, commits.values()))} commits")


if __name__ == "__main__":
    main()
