"""Pin what a study takes from the hub: `python -m mcgrpo.lock config/config.yaml`.

Writes the commit of every model and data set that the study file does not pin itself to a lock file beside it
(`config/config.lock.yaml`), which every later call of the workflow applies. `--check` writes nothing; it names what is
not pinned, or has moved on the hub since.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mcgrpo.records import atomic

Commits = dict[str, dict[str, str]]
"""Kind (`models`, `datasets`) -> name in the study -> commit."""

COMMIT = re.compile("[0-9a-f]{40}")


def lock_file(study: str | Path) -> Path:
    """Where the lock of a study file is."""
    return Path(study).with_suffix(".lock.yaml")


def unpinned(config: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(kind, name, spec) of everything from the hub whose revision is not a commit."""
    for kind in ("models", "datasets"):
        for name, spec in config.get(kind, {}).items():
            if "hub" in spec and not COMMIT.fullmatch(spec.get("revision", "")):
                yield kind, name, spec


def pin(config: dict[str, Any], commits: Commits) -> None:
    """Put the commits of a lock file in the place of revisions that are none, in place."""
    for kind, name, spec in unpinned(config):
        if commit := commits.get(kind, {}).get(name):
            spec["revision"] = commit


def read_lock(path: Path) -> Commits:
    """The commits of a lock file; none where there is no file."""
    return yaml.safe_load(path.read_text()) if path.is_file() else {}


def look_up(config: dict[str, Any]) -> Commits:
    """What the hub says now for everything that is not pinned in the study file.

    Raises:
        OSError: (or a subclass of the hub's) where it cannot be asked or does not know one.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    found: Commits = {}
    for kind, name, spec in unpinned(config):
        ask = api.model_info if kind == "models" else api.dataset_info
        found.setdefault(kind, {})[name] = ask(spec["hub"], revision=spec.get("revision")).sha
    return found


def differences(locked: Commits, now: Commits) -> list[str]:
    """One line for everything that is not pinned, or has moved."""
    lines = []
    for kind, names in now.items():
        for name, commit in names.items():
            pinned = locked.get(kind, {}).get(name)
            if pinned != commit:
                lines.append(
                    f"{kind}.{name}: {f'pinned at {pinned}, now' if pinned else 'not pinned, now'} at {commit}"
                )
    return lines


def main() -> None:
    """Write or check the lock file of a study."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("study", type=Path, help="a study file, such as config/config.yaml")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything is unpinned or moved")
    options = parser.parse_args()
    config, path = yaml.safe_load(options.study.read_text()), lock_file(options.study)
    try:
        now = look_up(config)
    except Exception as error:  # the hub's client raises its own, requests' and httpx's errors
        sys.exit(f"error: the hub could not be asked, nothing was written: {str(error).splitlines()[0]}")
    if options.check:
        lines = differences(read_lock(path), now)
        print("\n".join(lines) or "everything is pinned")
        sys.exit(bool(lines))
    with atomic(path) as temporary:
        temporary.write_text(yaml.safe_dump(now))
    print(f"{path}: {sum(map(len, now.values()))} commits")


if __name__ == "__main__":
    main()
