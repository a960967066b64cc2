"""The sums of a model that is used where it lies: `python -m mcgrpo.data.local_model --folder FOLDER --output FILE`."""

from pathlib import Path

from mcgrpo import command_line
from mcgrpo.sums import sums_of, write_list


def main() -> None:
    """Write the SHA-256 of each file of a folder, with which the jobs that read it compare it."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with command_line.errors():
        write_list(options.output, sums_of(options.folder))


if __name__ == "__main__":
    main()
