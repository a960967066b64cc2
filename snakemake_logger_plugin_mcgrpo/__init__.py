"""Snakemake's plugin of this package: `--logger mcgrpo` shows the progress of a study, and targets may follow options.

As in `snakemake --resources gpu=2 reports/tables.tex`, whatever the logger:

Snakemake 9 takes every word between such an option and the next one as a value of it, and then fails on the target.
Before it parses its command line it imports all packages with a name like this one's (it looks for logger plugins).
This package therefore moves such targets to the front: those after options that take files, pairs, or names of
variables. After other options with several values (`--until`, `--forcerun`) all words belong to the option. A Snakemake
whose options take one value each is not changed.

For a configuration file that Snakemake cannot read, the file and the line are named.
"""

import re
import sys
from argparse import ArgumentError
from collections.abc import Iterable
from functools import wraps
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

from snakemake.common.argparse import ArgumentParser
from snakemake.common.configfile import load_configfile

from snakemake_logger_plugin_mcgrpo.handler import LogHandler

__all__ = ["LogHandler"]

PAIR = re.compile(r"base64//|[^/=]+=")
"""The start of NAME=VALUE; the first form is that of values when Snakemake calls itself."""
PAIRS = ("--groups", "--group-components")
"""Options that take pairs, although their help does not say so."""
VARIABLES, VARIABLE = "--envvars", re.compile(r"\w+$")
FILES = "--configfile"
FILE_SUFFIXES = ("yaml", "yml", "json")


def targets_first(parser: ArgumentParser, words: list[str]) -> list[str]:
    """The words of a command line, with targets that an option would take as values moved to the front.

    A target is a word that cannot be a value: not NAME=VALUE, or not a name, if the option takes those; after
    `--configfile`, a word with another suffix than .yaml, .yml, .json and that of the first file. The word next to the
    option always belongs to it.

    Raises:
        ArgumentError: if that word must be NAME=VALUE and is not.
    """
    end = words.index("--") if "--" in words else len(words)
    targets, others, values = [], [], None
    for word, following in pairwise([*words[:end], ""]):
        is_option = word.startswith("-")
        is_next = bool(others) and others[-1].startswith("-")
        is_target = not is_option and not is_next and values is not None and not values.match(word)
        (targets if is_target else others).append(word)
        if is_option:
            values = _values(parser, word, following)
    return [*targets, *others, *words[end:]]


def _values(parser: ArgumentParser, option: str, first: str) -> re.Pattern[str] | None:
    """The pattern of an option's values; None if it does not take a list, or takes any word."""
    action = parser._option_string_actions.get(option)
    if action is None or action.nargs not in ("+", "*"):
        return None
    if FILES in action.option_strings:
        suffixes = {re.escape(suffix) for suffix in (*FILE_SUFFIXES, PurePath(first).suffix[1:])}
        return re.compile(rf".*({'|'.join(suffixes)})$")
    if VARIABLES in action.option_strings:
        return VARIABLE
    if "=" not in (action.metavar or "") and not set(PAIRS) & set(action.option_strings):
        return None
    if action.nargs == "+" and first and not first.startswith("-") and not PAIR.match(first):
        raise ArgumentError(action, f"{first!r} is not of the form {action.metavar or 'NAME=VALUE'}")
    return PAIR


def _name_broken_files(files: Iterable[str | Path]) -> None:
    """Exit with the name and the line of a configuration file that Snakemake cannot read."""
    try:
        from mcgrpo.study import strict_yaml
    except ImportError:  # of another version of the package, which the Snakefile refuses
        return
    for file in files:
        try:
            strict_yaml.load(file)  # first: Snakemake takes ten times as long
        except strict_yaml.YamlError as error:
            try:
                load_configfile(file)
            except Exception:
                sys.exit(f"error in the study file: {error}")


def _mend() -> None:
    parse_args = ArgumentParser.parse_args

    @wraps(parse_args)
    def parse_args_with_targets(self, args: list[str] | None = None, *rest: Any, **options: Any) -> Any:
        try:
            words = targets_first(self, sys.argv[1:] if args is None else list(args))
        except ArgumentError as error:
            self.error(str(error))
        parsed = parse_args(self, words, *rest, **options)
        _name_broken_files(getattr(parsed, "configfile", None) or ())
        return parsed

    ArgumentParser.parse_args = parse_args_with_targets


_mend()
