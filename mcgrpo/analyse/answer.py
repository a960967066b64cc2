"""The comparisons that a study's answer rests on, as claims that its method is better than a baseline."""

from collections.abc import Iterator
from typing import Any

from mcgrpo.analyse.claims import Claim, Comparison, Term
from mcgrpo.study.primary import METHOD


def questions(plan: dict[str, Any]) -> Iterator[Claim]:
    """The claims of a plan.json, those by its primary measure first: then the same by the other decoding.

    Each has one comparison: the method above a baseline, both at one G by one measure.
    """
    primary = plan["primary"]
    for measure in (primary["measure"], *(each for each in plan["measures"] if each != primary["measure"])):
        for each in primary["comparisons"]:
            baseline, size = each["baseline"], each["num_generations"]
            terms = Term(METHOD, size, measure=measure), Term(baseline, size, weight=-1, measure=measure)
            name = f"{METHOD} over {baseline} at G={size} by {measure}"
            better = Comparison(terms, low=0, low_open=True)
            yield Claim(name, "better", "", (better,), settings=tuple(each["settings"]))
