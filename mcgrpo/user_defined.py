"""Parts of a study by name: ours, or user-defined ones as `module:attribute`, which are imported."""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

Part = TypeVar("Part")


def find(name: str, known: Mapping[str, Any], kind: type[Part]) -> Part:
    """The part of that name: one of `known`, or `module:attribute`.

    The module is searched for on Python's path and in the current folder.

    Args:
        name: its name.
        known: those of ours by name.
        kind: the class of these parts; its name in lower case is what messages call one.

    Raises:
        ValueError: listing the known names, or naming the part of `module:attribute` that is missing, or what the
            module raised.
    """
    what, article = kind.__name__.lower(), "an" if kind.__name__[0] in "AEIO" else "a"
    if name in known:
        return known[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(f"unknown {what} {name!r}; there are: {', '.join(known)}, and module:attribute for your own")
    here = str(Path.cwd())
    try:
        with ExitStack() as at_end:
            if here not in sys.path and "" not in sys.path:  # it is not on the path of an installed command
                sys.path.append(here)
                at_end.callback(sys.path.remove, here)
            found = getattr(import_module(module), attribute, None)
    except (Exception, SystemExit) as error:  # a user's code can raise anything
        why = error if isinstance(error, ImportError | ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"{what} {name!r}: cannot import {module!r}: {why}") from error
    if not isinstance(found, kind):
        other = "there is none" if found is None else f"it is {found!r}"
        raise ValueError(f"{what} {name!r}: {attribute!r} of {module} should be {article} {kind.__name__}, but {other}")
    return found
