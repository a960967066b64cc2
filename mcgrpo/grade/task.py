"""A task: its prompt, how an answer is read and judged, and how a gold is stated. Standard library only."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcgrpo.records import Verdict

if TYPE_CHECKING:
    from mcgrpo.grade.verifier import Verifier

MAX_EXTRACTED = 500
"""Maximum length of an extracted answer in logs and files; verdicts use the whole answer."""

_WHOLE_FLOAT = re.compile(r"(-?[0-9]+)\.0*")


@dataclass(frozen=True)
class Judgement:
    """The verdict on one completion, and the extracted answer (at most `MAX_EXTRACTED` characters).

    If `gold_parsable` is false, there was nothing to compare with and the verdict is `unparseable`, whatever the
    completion. Such rows are counted separately; the paper gives them a constant reward (`mcgrpo.grade.rewards`).
    `note` states that a completion was not read.
    """

    verdict: Verdict
    extracted: str | None
    gold_parsable: bool = True
    note: str | None = None


class Task:
    """What a data set asks, as `task` of a study names it; a task is an instance of a subclass.

    By itself a completion answers with the content of its last `<answer>` tag, which is correct if it is the gold's
    text. A subclass says what is otherwise: `read`, `gold` and `compare`, or all of `judge`. These run in the process
    that trains or grades, without a limit of time: keep them linear in the text.
    """

    system_prompt: str | None = None
    """What a setting with this task as `prompt` tells the model; None for the question alone."""

    def judged_as(self, protocol: str) -> str:
        """The protocol that judges as this one does: with it, both are judged once."""
        return "paper"

    def read(self, completion: str, protocol: str) -> str | None:
        """The answer in a completion; None if there is none."""
        return last_tag(completion)

    def gold(self, answer: str, protocol: str) -> str | None:
        """The gold as `read` would read it; nothing if it does not parse."""
        return gold_text(answer)

    def compare(self, extracted: str, gold: str, protocol: str) -> Verdict:
        """`correct`, `equivalent` or `wrong`."""
        return "correct" if extracted == gold else "wrong"

    def judge_one(self, completion: str, answer: str, protocol: str = "paper") -> Judgement:
        """The judgement on one completion, given its gold."""
        return self.judge([completion], [answer], [""], protocol)[0]

    def judge(
        self,
        completions: Sequence[str],
        answers: Sequence[str],
        solutions: Sequence[str],
        protocol: str = "paper",
        verifier: "Verifier | None" = None,
    ) -> list[Judgement]:
        """One judgement for each completion, in order.

        Args:
            completions: texts; the three sequences are of one length.
            answers: their golds, empty where there is none.
            solutions: of the golds, empty where there is none.
            protocol: what `judged_as` gives.
            verifier: worker processes with limits of time and memory, for `mcgrpo.grade.tasks.math` and its subclasses.
        """
        golds = {answer: self.gold(answer, protocol) for answer in set(answers)}
        pairs = zip(completions, answers, strict=True)
        return [self._judged(completion, golds[answer], protocol) for completion, answer in pairs]

    def _judged(self, completion: str, gold: str | None, protocol: str) -> Judgement:
        extracted = self.read(completion, protocol)
        if not gold:
            return Judgement("unparseable", presentable(extracted), gold_parsable=False)
        if extracted is None:
            return Judgement("unparseable", None)
        return Judgement(self.compare(extracted, gold, protocol), presentable(extracted))

    def wrap(self, answer: str) -> str:
        """An answer as a completion states it: golds are graded so, against themselves."""
        return f"<answer>{answer}</answer>"

    def demonstration(self, solution: str, answer: str) -> str:
        """The completion that a warm start teaches; a solution that has its answer in tags stays as it is."""
        return solution if "<answer>" in solution else f"<think>{solution}</think>\n<answer>{answer}</answer>"

    def is_plain(self, gold: str) -> bool:
        """Whether a gold is of the form that this task asks for; an audit lists the others."""
        return True

    def remark(self, unparseable: Sequence[str]) -> str | None:
        """What to say of the completions that were unparseable, in one line."""
        return None


def last_tag(completion: str) -> str | None:
    """The stripped content of the last `<answer>` tag; None if there is none, or it is not closed."""
    _, tag, rest = completion.rpartition("<answer>")
    inside, closing, _ = rest.partition("</answer>")
    return inside.strip() if tag and closing else None


def gold_text(answer: str | int | float) -> str:
    """A gold as a short string: the text after the last `####`, with 27.0 (AMC's floats) as `27`."""
    text = str(answer).rpartition("####")[2].strip()
    whole = _WHOLE_FLOAT.fullmatch(text)
    return whole[1] if whole else text


def presentable(text: str | None) -> str | None:
    """A text that can be logged and stored: at most `MAX_EXTRACTED` characters, no lone surrogates, no NUL."""
    if text is None:
        return None
    return text[:MAX_EXTRACTED].encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
