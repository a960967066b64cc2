"""System prompts by name. Apart from the tasks that they belong to: a new grader draws no completions anew.

`gsm8k` and `math` are the system prompts of the MC-GRPO release (the paper prints none); `chat` and `plain` have none.
"""

from typing import Protocol, runtime_checkable

from mcgrpo import user_defined

_OPENING = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The assistant "
    "first thinks about the reasoning process in the mind and then provides the user with the answer. "
)
_CLOSING = (
    "The reasoning process and answer are enclosed within <think> </think> and <answer> </answer> tags, respectively, "
    "i.e., <think> reasoning process here </think>\n<answer> answer here </answer>."
)
_BOXED = (
    "And the answer should be of the following format: 'Therefore, the final answer is: $\\boxed{{ANSWER}}$. I hope it "
    "is correct' (without quotes) where ANSWER is just the final number or expression that solves the problem. "
)


SYSTEM_PROMPTS: dict[str, str | None] = {
    "plain": None,
    "chat": None,
    "gsm8k": _OPENING + _CLOSING,
    "math": _OPENING + _BOXED + _CLOSING + " ",
}


@runtime_checkable
class Prompt(Protocol):
    """What has a system prompt: a user-defined `mcgrpo.grade.task.Task`, say."""

    system_prompt: str | None


def system_prompt(name: str) -> str | None:
    """The system prompt of that name, or of a user-defined task, `module:attribute`.

    Raises:
        ValueError: for one that is not there, see `mcgrpo.user_defined`.
    """
    if name in SYSTEM_PROMPTS:
        return SYSTEM_PROMPTS[name]
    return user_defined.find(name, SYSTEM_PROMPTS, Prompt).system_prompt  # type: ignore[type-abstract]
