"""Prompt templates, and prompts as a model gets them. Standard library only.

`gsm8k` and `math` are the system prompts of the MC-GRPO release (the paper prints none); the user turn is the bare
question, rendered with the model's chat template. `chat` is the user turn alone; some templates add a system prompt of
their own. `plain` is the bare question without a template.
"""

from collections.abc import Sequence
from typing import Any

Prompt = str | list[dict[str, str]]

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


def as_prompt(template: str, question: str) -> Prompt:
    """The question in the format of TRL: a string, or messages with the roles system and user."""
    if template == "plain":
        return question
    system = SYSTEM_PROMPTS[template]
    opening = [] if system is None else [{"role": "system", "content": system}]
    return [*opening, {"role": "user", "content": question}]


def render(prompts: Sequence[Prompt], tokenizer: Any, chat_template_kwargs: dict[str, Any]) -> list[str]:
    """The exact text of each prompt that the model receives.

    Raises:
        ValueError: for messages if the tokenizer has no chat template.
    """
    if prompts and not isinstance(prompts[0], str) and tokenizer.chat_template is None:
        raise ValueError(f"{tokenizer.name_or_path}: this tokenizer has no chat template; use the prompt 'plain'")
    return [
        prompt
        if isinstance(prompt, str)
        else tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True, **chat_template_kwargs)
        for prompt in prompts
    ]


def token_ids(template: str, texts: list[str], tokenizer: Any) -> list[list[int]]:
    """The tokens of rendered prompts, as TRL makes them: a chat template has its special tokens in the text."""
    return tokenizer(texts, add_special_tokens=template == "plain")["input_ids"] if texts else []
