"""A study as Snakemake reads it: its files merged, and checked."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from mcgrpo import shipped
from mcgrpo.study.check import check
from mcgrpo.study.settings import Config, StudyError, without_nulls
from mcgrpo.study.strict_yaml import load

DEFAULT_FILE = Path("config/config.yaml")
"""The study of a call that names none, or where there is no such file the paper's.

What names no `study` of its own is merged over it, as by the Snakefile.
"""


def read(files: Sequence[str | Path] = ()) -> Config:
    """The study that `snakemake --configfile FILES` would run.

    Args:
        files: the last one on top; none for `DEFAULT_FILE`.

    Raises:
        StudyError: naming the file that cannot be read and the line at fault, or the key.
    """
    from snakemake.utils import update_config

    contents = [load(file) for file in files]
    if not any("study" in content for content in contents):
        contents.insert(0, load(DEFAULT_FILE if DEFAULT_FILE.is_file() else shipped.STUDY))
    config: Config = {}
    for content in contents:
        update_config(config, content)
    config = without_nulls(config)
    check(config)
    return config


def existing(config: Config, path: Path) -> Path:
    """A file that running a study makes.

    Raises:
        StudyError: if it is not there.
    """
    if not path.exists():
        raise StudyError(f"{path}: no such file: run study {config['study']!r} first")
    return path


def add_arguments(parser: argparse.ArgumentParser, default: str | Path = DEFAULT_FILE) -> None:
    """Give a command the argument `studies`, of files for `read`; `default` is what the help says of none."""
    parser.add_argument(
        "studies",
        type=Path,
        nargs="*",
        metavar="STUDY.yaml",
        help=f"study files, each merged over the one before (default: {default})",
    )
