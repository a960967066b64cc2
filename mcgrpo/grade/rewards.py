"""The grader for training and evaluation: `judge` gives verdicts, and rewards are derived from them.

Rewards are the paper's ("Reward Function Design"): accuracy 2.0 for a correct answer, 1.5 for an equivalent one, else
0; format 1.0. They are separate functions, which TRL sums with `GRPOConfig.reward_weights`. Neither torch nor sympy is
imported.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from mcgrpo.grade.task import Judgement
from mcgrpo.grade.tasks import get_task
from mcgrpo.grade.verifier import Verifier
from mcgrpo.records import PROTOCOLS, VERDICTS, Grade

REWARDS = {"correct": 2.0, "equivalent": 1.5}
"""The reward of a verdict; that of every other one is 0."""
ACCURATE = frozenset({"correct", "equivalent"})
"""Verdicts that count as accurate, whatever their reward."""
UNPARSABLE_GOLD = 1.0
"""The constant reward if the gold does not parse (appendix): no difference within the group."""


def judge(
    task: str,
    completions: Sequence[str],
    answers: Sequence[str | int | float | None],
    solutions: Sequence[str | None] | None = None,
    *,
    protocol: str = "paper",
    verifier: Verifier | None = None,
) -> list[Judgement]:
    """Judge each completion against its gold; returns one judgement each, in order.

    Args:
        task: `gsm8k`, judged in this process; `math` (also AIME and AMC), judged in worker processes; or
            `module:attribute`, a user-defined `mcgrpo.grade.task.Task`.
        answers: the golds; None or NaN where there is none, and `math` then takes that of the solution.
        protocol: `released` extracts gsm8k answers as the release does (see `mcgrpo.grade.tasks.gsm8k`) and judges math
            as `paper`; `robust` reads forms that `paper` misreads (see `mcgrpo.grade.robust`).
        verifier: the workers for math; by default those of this process.
    """
    _check("protocol", protocol, PROTOCOLS)
    asked, golds = get_task(task), [_gold(answer) for answer in answers]
    texts = [_gold(solution) for solution in (solutions or [""] * len(golds))]
    return asked.judge(completions, golds, texts, asked.judged_as(protocol), verifier)


def _gold(answer: str | int | float | None) -> str:
    """Its text; empty where a data set has null or, from pandas, NaN."""
    return "" if answer is None or answer != answer else str(answer)


def _check(what: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise ValueError(f"unknown {what} {value!r} (known: {', '.join(known)})")


def is_accurate(verdict: str) -> bool:
    """Whether a verdict counts as accurate: correct or equivalent."""
    return verdict in ACCURATE


def reward_of(judged: Judgement | Grade) -> float:
    """The paper's accuracy reward of a judgement."""
    return REWARDS.get(judged.verdict, 0.0) if judged.gold_parsable else UNPARSABLE_GOLD


def count_verdicts(judgements: Iterable[Judgement]) -> dict[str, int]:
    """The count of each of the six verdicts, and of rows whose gold does not parse (`gold_unparsable`)."""
    counts = dict.fromkeys((*VERDICTS, "gold_unparsable"), 0)
    for judgement in judgements:
        counts[judgement.verdict] += 1
        counts["gold_unparsable"] += not judgement.gold_parsable
    return counts


def reward_functions(
    task: str, names: Sequence[str], *, protocol: str = "paper", verifier: Verifier | None = None
) -> list[Callable[..., list[float]]]:
    """Reward functions for TRL, in the order of `names` (`accuracy`, `format`); TRL logs them as `{name}_reward`.

    `accuracy` needs a data set with a column `answer`, and for the task `math` takes `solution` into account if there.

    Raises:
        ValueError: names an unknown reward, task or protocol.
    """
    get_task(task)
    _check("protocol", protocol, PROTOCOLS)
    names = [names] if isinstance(names, str) else names
    accuracy = partial(accuracy_reward, task, protocol, verifier)
    accuracy.__name__ = "accuracy_reward"  # type: ignore[attr-defined]
    known = {"accuracy": accuracy, "format": format_reward}
    for name in names:
        _check("reward", name, known)
    return [known[name] for name in names]


def accuracy_reward(
    task: str,
    protocol: str,
    verifier: Verifier | None,
    /,  # a data set may have columns of these names
    completions: Sequence[Any],
    answer: Sequence[str],
    solution: Sequence[str | None] | None = None,
    log_extra: Callable[[str, list], None] | None = None,
    log_metric: Callable[[str, float], None] | None = None,
    **_: Any,
) -> list[float]:
    """The paper's accuracy reward; logs each verdict and extracted answer, and the counts of verdicts."""
    texts = [text_of(completion) for completion in completions]
    judgements = judge(task, texts, answer, solution, protocol=protocol, verifier=verifier)
    if log_extra:
        log_extra("verdict", [judgement.verdict for judgement in judgements])
        log_extra("extracted", [judgement.extracted or "" for judgement in judgements])
    if log_metric:
        for verdict, count in count_verdicts(judgements).items():
            log_metric(f"verdicts/{verdict}", count)
    return [reward_of(judgement) for judgement in judgements]


def format_reward(completions: Sequence[Any], **_: Any) -> list[float]:
    r"""The paper's format reward: 1.0 for a completion with a `\boxed{...}`, else 0."""
    return [float(is_boxed(text_of(completion))) for completion in completions]


def is_boxed(completion: str) -> bool:
    r"""Whether the completion has a nonempty `\boxed{...}`: the paper's format, as its release tests it.

    Linear: a box that is not closed ends the search, as no later one can be closed either.
    """
    start = completion.find("\\boxed{")
    while start >= 0:
        end = completion.find("}", start)
        if end < 0:
            return False
        if end > start + len("\\boxed{"):
            return True
        start = completion.find("\\boxed{", end)
    return False


def text_of(completion: str | Sequence[dict[str, Any]]) -> str:
    """The text of a completion; of a conversational one, the content of its last message."""
    if isinstance(completion, str):
        return completion
    content = (completion[-1].get("content") or "") if completion else ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
