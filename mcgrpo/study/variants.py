"""Names of variants: `default`, those of the study file, and those that a sweep of injected sign flips makes."""

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mcgrpo.trainer.flips import FlipRule

DEFAULT = "default"
COMPOSITE = "composite"
"""The variant of the paper's table of composite rewards."""
_RIVAL = "rival-"
_FLIP = re.compile(r"flip-(exact-)?(1|0\.[0-9]+)")


class Flips(NamedTuple):
    """Injected sign flips: each advantage with probability `rate`, or (`exact`) that share of every group."""

    rate: float
    rule: "FlipRule" = "bernoulli"


def is_rival(variant: str) -> bool:
    """Whether a variant is listed in the table of rivals: its name starts with `rival-`."""
    return variant.startswith(_RIVAL)


def rival_of(variant: str) -> str:
    """What a rival is called in tables: the name of the variant without `rival-`."""
    return variant.removeprefix(_RIVAL)


def flip_variant(flips: Flips) -> str:
    """The variant's name: `flip-0.05`, or `flip-exact-0.25`."""
    return f"flip-{'exact-' if flips.rule == 'exact' else ''}{flips.rate:g}"


def flips_of(variant: str) -> Flips | None:
    """What a variant of that name injects; None for any other name. The inverse of `flip_variant`."""
    if match := _FLIP.fullmatch(variant):
        return Flips(float(match[2]), "exact" if match[1] else "bernoulli")
    return None
