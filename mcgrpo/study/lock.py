"""Pin what a study takes from the hub: `python -m mcgrpo.study.lock config/config.yaml`.

Writes the commit of every model and data set that the study file does not pin itself to a lock file beside it
(`config/config.lock.yaml`), which every later call of the workflow applies. `--check` writes nothing; it names what is
not pinned, or has moved on the hub since.
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
        for name, spec in config.get(kind, {}).items():
            if "hub" in spec and not is_pinned(spec):
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
    locked = load(path) if path.is_file() and path.stat().st_size else {}
    for kind, names in locked.items():
        for name, found in names.items() if isinstance(names, dict) else [("", names)]:
            if not (isinstance(found, dict) and "hub" in found and COMMIT.fullmatch(str(found.get("commit")))):
                raise StudyError(f"{path}: {kind}.{name}: {found!r} is not a hub and a commit of 40 hexadecimal digits")
    return locked


def read_study(path: Path) -> dict[str, Any]:
    """A study file (or one merged over another), as far as pinning needs it.

    Raises:
        StudyError: naming what cannot be read.
    """
    config = load(path)
    for kind in ("models", "datasets"):
        specs = config.get(kind, {})
        if not isinstance(specs, dict) or not all(isinstance(spec, dict) for spec in specs.values()):
            raise StudyError(f"{path}: {kind}: names, each with keys and values, are expected")
    return config


def look_up(config: dict[str, Any]) -> Commits:
    """What the hub says now for everything that is not pinned in the study file.

    Raises:
        HubError: where it cannot be asked or does not know one.
    """
    commits: Commits = {}
    for kind, name, spec in unpinned(config):
        commits.setdefault(kind, {})[name] = {**_asked(spec), "commit": commit(kind, spec)}
    return commits


def differences(locked: Commits, now: Commits) -> list[str]:
    """One line for everything that is not pinned, or has moved."""
    lines = []
    for kind, names in now.items():
        for name, found in names.items():
            pinned = locked.get(kind, {}).get(name)
            if pinned != found:
                before = f"pinned at {pinned['commit']}" if pinned else "not pinned"
                lines.append(f"{kind}.{name}: {before}, now at {found['commit']}")
    return lines


def main() -> None:
    """Write or check the lock file of a study."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("study", type=Path, help="a study file, such as config/config.yaml")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything is unpinned or moved")
    options = parser.parse_args()
    path = lock_file(options.study)
    try:
        config, locked = read_study(options.study), read_lock(path)
        now = look_up(config)
    except StudyError as error:
        sys.exit(f"error: {error}")
    except HubError as error:
        sys.exit(f"error: the hub did not answer, nothing was written: {error}")
    if options.check:
        lines = differences(locked, now)
        print("\n".join(lines) or "everything is pinned")
        sys.exit(bool(lines))
    write_text(path, yaml.safe_dump(now))
    print(f"{path}: {sum(map(len, now.values()))} commits")


if __name__ == "__main__":
    main()
