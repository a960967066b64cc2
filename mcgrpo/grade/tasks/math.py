"""MATH, AIME and AMC: the answer is an expression in a box. Judged by math-verify, in worker processes."""

from collections.abc import Sequence

from mcgrpo.grade import robust
from mcgrpo.grade.prompts import SYSTEM_PROMPTS
from mcgrpo.grade.task import Judgement, Task
from mcgrpo.grade.verifier import MAX_CHARACTERS, Verifier, shared


class Math(Task):
    """MATH: a computer algebra system compares, which must not read model output in this process.

    A gold is that of the solution where there is one, see `mcgrpo.grade.math_grader`. `released` is `paper`; `robust`
    reads forms that `paper` misreads (see `mcgrpo.grade.robust`).
    """

    system_prompt = SYSTEM_PROMPTS["math"]

    def judged_as(self, protocol: str) -> str:
        """The release judges as the paper says."""
        return "robust" if protocol == "robust" else "paper"

    def judge(
        self,
        completions: Sequence[str],
        answers: Sequence[str],
        solutions: Sequence[str],
        protocol: str = "paper",
        verifier: Verifier | None = None,
    ) -> list[Judgement]:
        """As `Task.judge`; by default with the workers of this process."""
        if protocol == "robust":
            graded = [_rewritten(*each) for each in zip(completions, answers, solutions, strict=True)]
            completions, answers, solutions = ([each[part] for each in graded] for part in range(3))
        return (verifier or shared()).judge(answers, solutions, completions, exact=protocol == "robust")

    def wrap(self, answer: str) -> str:
        """In a box."""
        return f"\\boxed{{{answer}}}"


def _rewritten(completion: str, answer: str, solution: str) -> tuple[str, str, str]:
    """As `robust.pair`; a completion that is too long to be read is unchanged."""
    if len(completion) > MAX_CHARACTERS:
        return completion, answer, solution
    return robust.pair(completion, answer, solution)
