"""TRL's signatures for overrides that hand all arguments on."""

from collections.abc import Callable
from inspect import signature
from typing import Any, ParamSpec

Arguments = ParamSpec("Arguments")


def signed_as(other: Callable[Arguments, Any]) -> Callable[[Callable[..., Any]], Callable[Arguments, None]]:
    """Decorate an `__init__` so that editors, type checkers and `help` show the arguments of that other one."""

    def signed(own: Any) -> Callable[Arguments, None]:
        own.__signature__ = signature(other)
        return own

    return signed
