"""Pin what a study takes from the hub: `mcgrpo lock STUDY.yaml`.

Writes the commit of every model and data set that the study does not pin to `STUDY.lock.yaml` beside it: a study file
to merge over it, `snakemake --configfile STUDY.yaml STUDY.lock.yaml`.
"""

from pathlib import Path
from typing import Any

import yaml

from mcgrpo import command_line
from mcgrpo.files import write_text
from mcgrpo.study.hub import HubError, commit, is_pinned
from mcgrpo.study.settings import StudyError
from mcgrpo.study.strict_yaml import load


def revisions(config: dict[str, Any]) -> dict[str, dict[str, dict[str, str]]]:
    """What the hub says now of everything that is not pinned: kind (`models`, `datasets`) -> name -> its `revision`.

    Raises:
        HubError: where the hub cannot be asked or does not know one.
    """
    return {
        kind: {
            name: {"revision": commit(kind, spec)}
            for name, spec in (config.get(kind) or {}).items()
            if isinstance(spec, dict) and "hub" in spec and not is_pinned(spec)
        }
        for kind in ("models", "datasets")
    }


def main() -> None:
    """Write the commits of a study's models and data sets to a file that is merged over it."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("study", type=Path, help="a study file, such as config/config.yaml")
    study = parser.parse_args().study
    with command_line.errors(StudyError, HubError):
        commits = revisions(load(study))
    output = study.with_suffix(".lock.yaml")
    write_text(output, yaml.safe_dump(commits))
    print(f"{output}: {sum(map(len, commits.values()))} commits")


if __name__ == "__main__":
    main()
