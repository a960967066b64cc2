"""Completions of a model in memory: one way to draw them, for evaluations and for the check of a warm start.

Training draws in the same way, by TRL: a rendered prompt gets no more special tokens, sampling is as asked for and not
as the model's generation config says, and the tokenizer's end token ends a completion beside those of that config.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mcgrpo.records import Decoding

Tokens = Sequence[Sequence[int]]
"""Token ids of each prompt."""
Drawn = list[tuple[str, str]]
"""(text, finish reason) of each completion."""


def ends_of(generation_config: Any, tokenizer: Any) -> set[int]:
    """The token ids that end a completion: those of a model's generation config, and the tokenizer's."""
    ends = generation_config.eos_token_id
    return {tokenizer.eos_token_id, *([ends] if isinstance(ends, int) else ends or [])}


def bare_config(model: Any, tokenizer: Any) -> Any:
    """A model's generation config without its sampling parameters, such as a repetition penalty (Qwen's is 1.1)."""
    from transformers import GenerationConfig

    ends = sorted(ends_of(model.generation_config, tokenizer))
    return GenerationConfig(eos_token_id=ends, pad_token_id=tokenizer.pad_token_id)


def draw(
    model: Any,
    tokenizer: Any,
    prompts: Tokens,
    decoding: Decoding,
    seed: int,
    settings: dict[str, Any],
) -> Drawn:
    """One completion of each prompt (token ids), in one padded batch, by transformers.

    Args:
        model: its generation config is left as it was.
        tokenizer: with a padding token.
        decoding: greedy, or sampled at the `temperature` and `top_p` of the settings.
        seed: of all random generators.
        settings: `max_new_tokens`; `stop`, strings that end a completion, which has them as its last characters.
    """
    import torch
    from transformers import set_seed

    sampling: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    if decoding == "sampled":
        sampling = {"do_sample": True, "top_k": 0} | {name: settings[name] for name in ("temperature", "top_p")}
    padded = tokenizer.pad({"input_ids": list(prompts)}, padding_side="left", return_tensors="pt")
    start, stop = padded["input_ids"].size(1), settings.get("stop", [])
    set_seed(seed)
    with torch.no_grad(), _configured(model, bare_config(model, tokenizer)) as config:
        output = model.generate(
            **padded.to(model.device),
            max_new_tokens=settings["max_new_tokens"],
            stopping_criteria=[stops_at(stop, tokenizer, start)] if stop else None,
            **sampling,
        )
        ends = config.eos_token_id
    return list(_texts(output[:, start:].tolist(), tokenizer, ends, stop))


@contextmanager
def _configured(model: Any, config: Any) -> Iterator[Any]:
    """Within it a model has this generation config; `generate` takes what is not stated from the model's."""
    own, model.generation_config = model.generation_config, config
    try:
        yield config
    finally:
        model.generation_config = own


def stops_at(stop: Sequence[str], tokenizer: Any, start: int) -> Any:
    """A criterion of `generate` that ends rows whose text from token `start` on holds one of these strings.

    As in vLLM the prompt does not count; transformers' own `stop_strings` would find one that begins in it.
    """
    import torch

    window = 4 * max(map(len, stop)) + 4  # tokens, of which a character can have four

    def criterion(input_ids: Any, scores: Any, **_: Any) -> Any:
        ids = input_ids[:, max(start, input_ids.size(1) - window) :]
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        found = [any(each in text for each in stop) for text in texts]
        return torch.tensor(found, dtype=torch.bool, device=input_ids.device)

    return criterion


def _texts(rows: Tokens, tokenizer: Any, ends: Sequence[int], stop: Sequence[str]) -> Iterator[tuple[str, str]]:
    for row in rows:
        end = next((position for position, token in enumerate(row) if token in ends), None)
        text = tokenizer.decode(row[:end], skip_special_tokens=True)
        places = [text.find(each) + len(each) for each in stop if each in text]
        yield text[: min(places)] if places else text, "length" if end is None and not places else "stop"
