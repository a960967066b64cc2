"""A study as Snakemake reads it: its files merged, and checked."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from mcgrpo import shipped
from mcgrpo.study.check import check
from mcgrpo.study.settings import Config, StudyError
from mcgrpo.study.strict_yaml import load

DEFAULT = Path("config/config.yaml")
"""The study of a call that names none, or where there is no such file the paper's.

What names no `study` of its own is merged over it, as by the Snakefile.
"""


def read(files: Sequence[str | Path] = ()) -> Config:
    """The study that `snakemake --configfile FILES` would run.

    Args:
        files: the last one on top; none for `DEFAULT`.

    Raises:
        StudyError: naming the file that cannot be read, or the key at fault.
    """
    config, _ = merged(files)
    check(config, schema())
    return config


def merged(files: Sequence[str | Path]) -> tuple[Config, list[Path]]:
    """The files merged, unchecked, and which they were, from the bottom up.

    Raises:
        StudyError: naming the file that cannot be read, and the line at fault.
    """
    from snakemake.utils import update_config

    layers = [Path(file) for file in files]
    contents = [load(file) for file in layers]
    if not any("study" in content for content in contents):
        base = DEFAULT if DEFAULT.is_file() else shipped.STUDY
        layers, contents = [base, *layers], [load(base), *contents]
    config: Config = {}
    for content in contents:
        update_config(config, content)
    return config, layers


def made(config: Config, path: Path) -> Path:
    """A file that running a study makes.

    Raises:
        StudyError: if it is not there.
    """
    if not path.exists():
        raise StudyError(f"{path}: no such file: nothing of study {config['study']!r} has been run here")
    return path


def schema() -> Config:
    """The schema of study files."""
    return load(shipped.STUDY_SCHEMA)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a command the options that `resolve` reads."""
    parser.add_argument(
        "studies",
        type=Path,
        nargs="*",
        metavar="STUDY.yaml",
        help=f"study files, each merged over the one before (default: {DEFAULT})",
    )
    parser.add_argument("--directory", type=Path, help="where the study is run, as Snakemake's option (default: here)")


def resolve(options: argparse.Namespace) -> list[Path]:
    """The study files that a command line names, from here; then go to where the study is run."""
    files = [path.absolute() for path in options.studies]
    if options.directory is not None:
        try:
            os.chdir(options.directory)
        except OSError as error:
            raise StudyError(f"--directory {options.directory}: {error.strerror}") from None
    return files
