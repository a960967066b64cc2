"""Command lines of stages and commands."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mcgrpo.files import FULL


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
    """End the command with one line, `error: ...`, for these exceptions and on a full disk."""
    try:
        yield
    except kinds as error:
        raise SystemExit(f"error: {error}") from None
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise SystemExit(f"error: {error.filename}: {error.strerror}") from None


def whole(text: str, least: int = 1) -> int:
    """A whole number as the `type` of an argument; `least` is the smallest that is accepted."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} should be a whole number, {least} or more")
    return int(text)
