"""Build or download a model: `python -m mcgrpo.data.models --spec JSON --output FOLDER`, and FOLDER.sha256 beside it.

The spec is the study's entry under `models`: `toy` (built here) or `hub` (with an optional `revision`).
"""

import json
from pathlib import Path

from mcgrpo import command_line
from mcgrpo.data.fetch import fetch
from mcgrpo.files import as_new
from mcgrpo.study.hub import HubError
from mcgrpo.study.settings import StudyError
from mcgrpo.sums import write_sums


def main() -> None:
    """Build or download one model of a study."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--spec", type=json.loads, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with command_line.errors(HubError, StudyError):
        if "hub" in options.spec:
            fetch(options.spec, options.output)
        else:
            from mcgrpo.data.toy.models import build

            build(options.spec["toy"], options.output)
        as_new(options.output)
        write_sums(options.output)


if __name__ == "__main__":
    main()
