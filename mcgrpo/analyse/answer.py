"""The comparisons that a study's answer rests on, as claims that its method is better than a baseline."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mcgrpo.analyse.claims import Claim, Comparison, Term
from mcgrpo.study.primary import METHOD


class Question(NamedTuple):
    """Is the method better than this baseline, at this G, by this measure, in each of these settings?"""

    baseline: str
    num_generations: int
    measure: str
    settings: tuple[str, ...]

    @property
    def claim(self) -> Claim:
        """The question as a claim; its rows in contrasts.csv have its id."""
        name = f"{METHOD} over {self.baseline} at G={self.num_generations} by {self.measure}"
        signed = ((METHOD, 1), (self.baseline, -1))
        terms = (Term(method, self.num_generations, sign, measure=self.measure) for method, sign in signed)
        better = Comparison(tuple(terms), low=0, low_open=True)
        return Claim(name, "better", "", (better,), settings=self.settings)


def questions(plan: dict[str, Any]) -> Iterator[Question]:
    """The questions of a plan.json, those by its primary measure first: then the same by the other decoding."""
    primary = plan["primary"]
    for measure in (primary["measure"], *(each for each in plan["measures"] if each != primary["measure"])):
        for each in primary["comparisons"]:
            yield Question(each["baseline"], each["num_generations"], measure, tuple(each["settings"]))
