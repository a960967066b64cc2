"""Snakemake's plugin of this package: `--logger mcgrpo` shows the progress of a study, and targets may follow options.

As in `snakemake --resources gpu=2 reports/tables.tex`, whatever the logger:

Snakemake 9 takes every word between such an option and the next for a value of it, and then fails on the target. Before
it reads its command line it imports all packages named as this one is (it looks for logger plugins), so this one puts
those targets in front, where Snakemake finds them: behind options of files, of pairs, and of names of variables.
Behind other options of several words (`--until`, `--forcerun`: rules or targets) all are the option's, and a Snakemake
whose options take one value each is left alone.

A configuration file that Snakemake cannot read is named, with the line at fault.
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
"""How NAME=VALUE begins; the first is how Snakemake writes values when it calls itself."""
PAIRS = ("--groups", "--group-components")
"""Options of pairs whose help does not say so."""
VARIABLES, VARIABLE = "--envvars", re.compile(r"\w+$")
FILES = "--configfile"
FILE_SUFFIXES = ("yaml", "yml", "json")


def targets_first(parser: ArgumentParser, words: list[str]) -> list[str]:
    """The words of a command line, with targets that an option would take for its values in front.

    A target is what cannot be a value: no NAME=VALUE, or no name, where the option takes those; of several words after
    `--configfile`, one that ends neither in .yaml, .yml, .json nor as the first does. The word next to the option
    always belongs to it.

    Raises:
        ArgumentError: if that word is no NAME=VALUE and has to be.
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
    """What the values of an option look like, of which one is given; None if it takes no list of them, or anything."""
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
    """End with the name and the line of a configuration file that Snakemake cannot read: it says neither."""
    for file in files:
        try:
            load_configfile(file)
        except Exception:
            from mcgrpo.study import strict_yaml

            try:
                strict_yaml.load(file)
            except strict_yaml.YamlError as error:
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
