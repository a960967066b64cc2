"""Command lines of stages and commands."""

import argparse
import sys


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser whose usage names the command as it was called: `python -m mcgrpo.grade`, or `mcgrpo grade`.

    Of a module, argparse alone names the file, before Python 3.14.
    """
    module = sys.modules["__main__"].__spec__
    is_module = module and sys.argv[0].endswith(".py")  # `mcgrpo.cli` sets another name
    prog = f"python -m {module.name.removesuffix('.__main__')}" if is_module else None
    return argparse.ArgumentParser(prog=prog, description=description)
