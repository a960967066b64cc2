"""Does the median help? A study's answer in two parts, each with its paired numbers, from contrasts.csv.

The part that decides is about the control GRPO+1, which draws as many rollouts as MC-GRPO and keeps the mean: what the
median gains over it is the median's. The other is about GRPO at the same G, with one rollout less for each prompt.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mcgrpo.analyse.answer import Question, questions
from mcgrpo.analyse.records import Contrast
from mcgrpo.report import wording
from mcgrpo.report.claims.judge import verdicts
from mcgrpo.report.tables.display import TONES, Display, Entry, Line
from mcgrpo.study.methods import label
from mcgrpo.study.primary import CONTROL, MEAN, METHOD

NAME = "answer"
WORDS = {
    "holds": "better", "fails": "worse", "equivalent": "equivalent", "inconclusive": "not shown",
    "not measured": wording.MISSING,
}  # fmt: skip
"""The verdict on the claim that a difference is above 0, in words for a gain."""
ASKED = {CONTROL: "Does the median help?", MEAN: "Is MC-GRPO better than GRPO at the same G?"}
AGAINST = {
    CONTROL: "which draws as many rollouts and keeps the mean",
    MEAN: "which draws one rollout less for each prompt",
}
Place = tuple[str, str, int]
"""Setting, benchmark and G."""


@dataclass(frozen=True)
class Part:
    """The comparisons with one baseline, with a word for each, corrected for their number (Holm), and one for all."""

    baseline: str
    measure: str
    rows: dict[Place, Contrast]
    words: dict[Place, str]

    @property
    def word(self) -> str:
        """What the comparisons say together; none is better or worse by chance in more than 5% of studies."""
        return overall(list(self.words.values()))

    @property
    def asks(self) -> str:
        """The question, and its answer in a word or two."""
        return f"{ASKED[self.baseline]} {self.word}."

    @property
    def compares(self) -> str:
        """What is compared, in what; or that the study does not compare it."""
        beside = f"{label(METHOD)} {{}} {label(self.baseline)}, {AGAINST[self.baseline]}"
        if not self.rows:
            return f"{beside.format('is not trained beside')}."
        sort = "greedy accuracy" if self.measure == "greedy" else f"sampled accuracy ({self.measure})"
        return f"{beside.format('against')}, in {sort}."


@dataclass(frozen=True)
class Answer:
    """Both parts, the one that decides first; `beside` are the same by the other decoding, if there is one.

    `margin` is the study's `equivalence_margin`.
    """

    parts: tuple[Part, Part]
    beside: tuple[Part, ...]
    margin: float

    @property
    def word(self) -> str:
        """The answer in a word or two."""
        return self.parts[0].word

    @property
    def places(self) -> list[Place]:
        """What is compared with any of the two, in order."""
        return sorted({place for part in self.parts for place in part.rows})

    @property
    def about(self) -> str:
        """What the words mean."""
        within = wording.count_points(self.margin)
        text = (
            "Differences are in points, paired by seed and problem, with the 95% interval of one comparison. Better, "
            "worse: by a two-sided test at 5%, corrected for the number of comparisons with the same baseline (Holm). "
            f"Equivalent: neither, and the difference lies within {within} by two one-sided tests at 5%, corrected "
            "likewise. Not shown: none of these."
        )
        beside = " The other decoding is of the same models, and has no verdict."
        return text + (beside if self.beside else "")


def answer(plan: dict[str, Any], contrasts: Iterable[Contrast]) -> Answer:
    """The answer of a study.

    Args:
        plan: plan.json.
        contrasts: the rows of contrasts.csv.
    """
    contrasts, asked = list(contrasts), list(questions(plan))
    primary = plan["primary"]["measure"]
    others = [measure for measure in plan["measures"] if measure != primary]
    main, control = (_part(baseline, primary, asked, contrasts) for baseline in (MEAN, CONTROL))
    beside = tuple(_part(baseline, each, asked, contrasts) for each in others for baseline in (CONTROL, MEAN))
    return Answer((control, main), beside, plan["equivalence_margin"])


def _part(baseline: str, measure: str, asked: Sequence[Question], contrasts: Sequence[Contrast]) -> Part:
    of_part = [each for each in asked if (each.baseline, each.measure) == (baseline, measure)]
    sizes = {each.claim.id: each.num_generations for each in of_part}
    own = [row for row in contrasts if row.claim in sizes and row.kind == "single"]
    rows = {(row.setting or "", row.benchmark or "", sizes[row.claim]): row for row in own}
    words = [WORDS[verdict] for verdict in verdicts(list(rows.values()))]
    return Part(baseline, measure, rows, dict(zip(rows, words, strict=True)))


def overall(words: Sequence[str]) -> str:
    """One word for the verdicts of several comparisons."""
    there = [word for word in words if word != wording.MISSING]
    if not there:
        return "Not known yet" if words else "Not asked"
    if "better" in there and "worse" in there:
        word = "It depends"
    elif "better" in there:
        word = "Yes" if set(there) == {"better"} else "In part"
    elif "worse" in there:
        word = "No, it hurts" if set(there) == {"worse"} else "In part it hurts"
    else:
        word = "No, it is equivalent" if set(there) == {"equivalent"} else "Not shown"
    return word if len(there) == len(words) else f"So far: {word[0].lower()}{word[1:]}"


def number(row: Contrast) -> str:
    """A difference with its interval: "+0.2 [−0.1, +0.5]"."""
    low, high = (None if bound is None else bound / 100 for bound in (row.low, row.high))
    return wording.signed(math.nan if row.value is None else row.value / 100, low, high)


def markdown(found: Answer, lost: str) -> str:
    """The part that decides, the other one, each with a line for a comparison; what words mean; and what was lost."""
    control, main = found.parts
    lines = [f"**{control.asks}** {control.compares}", *_listed(control, found.beside)]
    lines += [f"{main.asks} {main.compares}", *_listed(main, found.beside)]
    return "\n".join([*lines, *([found.about, ""] if found.places else []), f"Of the study: {lost}"]) + "\n"


def _listed(part: Part, beside: Iterable[Part]) -> Iterator[str]:
    yield ""
    others = [other for other in beside if other.baseline == part.baseline]
    for place, row in part.rows.items():
        seeds = [f"{wording.count(row.seeds, 'seed')}"] if row.seeds else []
        told = seeds + [f"{other.measure}: {number(other.rows[place])}" for other in others]
        more = f" ({'; '.join(told)})" if told else ""
        setting, benchmark, size = place
        shown = [number(row).replace(" ", " points ", 1), part.words[place]]
        yield f"- {setting} on {benchmark}, G={size}: {', '.join(dict.fromkeys(shown))}{more}"
    yield from [""] if part.rows else []


def _seeds(found: Answer, place: Place) -> str:
    return wording.span([part.rows[place].seeds or 0 for part in found.parts if place in part.rows])


def display(found: Answer) -> Display:
    """The answer as a table, with its sentences as the caption."""
    control, main = found.parts
    lines = tuple(Line(place[:2], tuple(_entries(found, place))) for place in found.places)
    headings = ["Setting", "Benchmark", "G"]
    for part in (*found.parts, *found.beside):
        name = f"{label(METHOD)} − {label(part.baseline)}"
        headings.append(name if part in found.parts else f"{name}, {part.measure}")
    caption = " ".join([control.asks, control.compares, main.asks, main.compares, found.about])
    return Display(NAME, caption, (*headings, "Seeds"), lines)


def _entries(found: Answer, place: Place) -> Iterator[Entry]:
    yield Entry(str(place[2]))
    for part in (*found.parts, *found.beside):
        if place not in part.rows:
            yield Entry("")
            continue
        shown, word = number(part.rows[place]), part.words[place] if part in found.parts else ""
        yield Entry(" ".join(dict.fromkeys(filter(None, (shown, word)))), TONES.get(word, ""))
    yield Entry(_seeds(found, place))
