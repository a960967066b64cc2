"""Completions for a benchmark: one greedy and k sampled for each problem of the test split.

`python -m mcgrpo.generate --model FOLDER --data FILE --prompt plain --settings JSON --seed 0 --output FILE`
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mcgrpo.prompts import as_prompt, render, sha256
from mcgrpo.records import Completion, Decoding, Example, read_jsonl, write_jsonl


def load(folder: Path) -> tuple[Any, Any]:
    """The model and tokenizer of a folder, with TRL's choice of what pads and what ends a completion.

    Nothing else of the folder's generation config stays: a repetition penalty (Qwen's is 1.1) is not the study's.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
    ends = sorted(_ends(model) | {tokenizer.eos_token_id})
    model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=tokenizer.pad_token_id)
    return model, tokenizer


def _ends(model: Any) -> set[int]:
    ends = model.generation_config.eos_token_id
    return {ends} if isinstance(ends, int) else set(ends or [])


def generate(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    decoding: Decoding,
    settings: dict[str, Any],
    add_special_tokens: bool = False,
) -> list[tuple[str, str]]:
    """(completion, finish reason) for each text, in order; batches hold prompts of similar length."""
    kwargs: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    if decoding == "sampled":
        kwargs = {
            "do_sample": True,
            "temperature": settings["temperature"],
            "top_p": settings["top_p"],
            "top_k": 0,
        }
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    found: list[tuple[str, str]] = [("", "")] * len(texts)
    for start in range(0, len(order), settings["batch_size"]):
        batch = order[start : start + settings["batch_size"]]
        inputs = tokenizer(
            [texts[position] for position in batch],
            return_tensors="pt",
            padding=True,
            add_special_tokens=add_special_tokens,
            return_token_type_ids=False,
        )
        made = _generate_batch(model, tokenizer, inputs, max_new_tokens=settings["max_new_tokens"], **kwargs)
        for position, result in zip(batch, made, strict=True):
            found[position] = result
    return found


def _generate_batch(model: Any, tokenizer: Any, inputs: Any, **kwargs: Any) -> Iterator[tuple[str, str]]:
    output = model.generate(**inputs.to(model.device), pad_token_id=tokenizer.pad_token_id, **kwargs)
    ends = _ends(model)
    for row in output[:, inputs["input_ids"].size(1) :].tolist():
        stop = next((place for place, token in enumerate(row) if token in ends), None)
        yield tokenizer.decode(row[:stop], skip_special_tokens=True), "length" if stop is None else "stop"


def complete(
    model: Any, tokenizer: Any, examples: Sequence[Example], prompt: str, settings: dict[str, Any]
) -> Iterator[Completion]:
    """The rows of a completions file: the greedy ones first, then sample after sample."""
    prompts = [as_prompt(prompt, example.question) for example in examples]
    texts = render(prompts, tokenizer, settings.get("chat_template_kwargs", {}))
    plain = isinstance(prompts[0], str)  # a chat template writes its special tokens itself
    rounds: list[tuple[Decoding, int]] = [("greedy", 0)] + [("sampled", k) for k in range(settings["samples"])]
    for decoding, sample in rounds:
        made = generate(model, tokenizer, texts, decoding, settings, add_special_tokens=plain)
        for example, text, (completion, reason) in zip(examples, texts, made, strict=True):
            yield Completion(
                id=example.id,
                sample=sample,
                completion=completion,
                answer=example.answer,
                solution=example.solution,
                decoding=decoding,
                prompt_sha256=sha256(text),
                finish_reason=reason,
            )


def main() -> None:
    """Generate completions for the test split of one benchmark."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--data", type=Path, required=True, help="the benchmark, resources/data/NAME.jsonl")
    parser.add_argument("--prompt", required=True, help="a template of mcgrpo.prompts")
    parser.add_argument("--settings", type=json.loads, required=True, help="the study's `evaluation`, as JSON")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    examples = [example for example in read_jsonl(options.data, Example) if example.split == "test"]
    if not examples:
        raise SystemExit(f"error: {options.data}: no example of split 'test'")

    import torch
    from transformers import set_seed

    torch.set_num_threads(options.threads)
    set_seed(options.seed)
    model, tokenizer = load(options.model)
    with torch.inference_mode():
        write_jsonl(options.output, complete(model, tokenizer, examples, options.prompt, options.settings))


if __name__ == "__main__":
    main()
