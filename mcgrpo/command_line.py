"""Command lines of stages and commands."""

import argparse
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser whose usage names the command as it was called: `python -m mcgrpo.grade`, or `mcgrpo grade`.

    Of a module, argparse alone names the file, before Python 3.14.
    """
    module = sys.modules["__main__"].__spec__
    is_module = module and sys.argv[0].endswith(".py")  # `mcgrpo.cli` sets another name
    prog = f"python -m {module.name.removesuffix('.__main__')}" if is_module else None
    return argparse.ArgumentParser(prog=prog, description=description)


@contextmanager
def errors(*kinds: type[Exception]) -> Iterator[None]:
    """End the command with one line, `error: ...`, by which `mcgrpo progress` knows a log, for these exceptions."""
    try:
        yield
    except kinds as error:
        raise SystemExit(f"error: {error}") from None


def whole(text: str, least: int = 1) -> int:
    """A whole number as the `type` of an argument; `least` is the smallest that is accepted."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} should be a whole number, {least} or more")
    return int(text)


def number(text: str, least: float, most: float = math.inf) -> float:
    """A finite number as the `type` of an argument, within limits that are accepted too."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (least <= value <= most and math.isfinite(value)):
        limits = f", {least:g} or more" if most == math.inf else f" between {least:g} and {most:g}"
        raise argparse.ArgumentTypeError(f"{text!r} should be a number{limits}")
    return value
