"""Generate completions for a benchmark: one greedy and k sampled for each problem of the test split.

The settings are a study's `evaluation`; with `greedy: false` there is no greedy one, and with `prompts: n` a random
sample of n problems is used, the same for every run.

`python -m mcgrpo.generate --model FOLDER --data FILE --prompt plain --settings JSON --seed 0 --output FILE`

Each batch is a pure function of its prompts and its own seed.
"""

import argparse
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mcgrpo import command_line
from mcgrpo.data.prompts import as_prompt, render, sha256
from mcgrpo.files import read_jsonl, write_jsonl
from mcgrpo.records import Completion, Decoding, Example
from mcgrpo.sums import check_seal, seal


class Batch(NamedTuple):
    """One unit of work: the index of the sample, and the positions of its problems in the benchmark."""

    decoding: Decoding
    sample: int
    positions: tuple[int, ...]

    def seed(self, run_seed: int) -> int:
        """The seed of the batch, in [0, 2^31)."""
        digest = hashlib.sha256(repr((run_seed, *self)).encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1


def batches(texts: Sequence[str], settings: dict[str, Any]) -> list[Batch]:
    """All batches: of the same prompts first a greedy one, if any, then by sample; prompts are of similar length."""
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    size = settings["batch_size"]
    parts = [tuple(order[start : start + size]) for start in range(0, len(order), size)]
    rounds: list[tuple[Decoding, int]] = [("greedy", 0)] if settings.get("greedy", True) else []
    rounds += [("sampled", k) for k in range(settings["samples"])]
    return [Batch(decoding, sample, part) for part in parts for decoding, sample in rounds]


def complete(
    engine: Any, examples: Sequence[Example], prompt: str, settings: dict[str, Any], seed: int
) -> Iterator[Completion]:
    """The rows of a completions file: greedy ones first, then by sample, with problems in order."""
    prompts = [as_prompt(prompt, example.question) for example in examples]
    texts = render(prompts, engine.tokenizer, settings.get("chat_template_kwargs", {}))
    plain = isinstance(prompts[0], str)  # a chat template adds special tokens itself
    ids = engine.tokenizer(texts, add_special_tokens=plain)["input_ids"]
    rows = {}
    for batch in batches(texts, settings):
        drawn = engine.complete([ids[p] for p in batch.positions], batch.decoding, batch.seed(seed))
        rows |= {(batch.decoding, batch.sample, p): row for p, row in zip(batch.positions, drawn, strict=True)}
    for (decoding, sample, position), (completion, reason) in sorted(rows.items()):
        example = examples[position]
        yield Completion(
            id=example.id,
            sample=sample,
            completion=completion,
            answer=example.answer,
            solution=example.solution,
            decoding=decoding,
            prompt_sha256=sha256(texts[position]),
            finish_reason=reason,
        )


def some(examples: Sequence[Example], count: int | None) -> list[Example]:
    """A fixed random sample of `count` examples, in order; all examples if there are fewer."""
    if count is None or count >= len(examples):
        return list(examples)
    return [examples[index] for index in sorted(random.Random(0).sample(range(len(examples)), count))]


def main() -> None:
    """Generate completions for the test split of one benchmark."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--data", type=Path, required=True, help="the benchmark, resources/data/NAME.jsonl")
    parser.add_argument("--prompt", required=True, help="a template of mcgrpo.data.prompts")
    parser.add_argument("--settings", type=json.loads, required=True, help="the study's `evaluation`, as JSON")
    parser.add_argument("--sealed", action="store_true", help="the model was trained here: check the sums of its files")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--code", default="", help="what tells this code from other code")
    options = parser.parse_args()
    with command_line.errors(ValueError):
        generate(options)


def generate(options: argparse.Namespace) -> None:
    """Write the completions that the command line asks for.

    Raises:
        ValueError: for data, a model or settings that do not do.
    """
    examples = [example for example in read_jsonl(options.data, Example) if example.split == "test"]
    if not examples:
        raise ValueError(f"{options.data}: no example of split 'test'")
    examples = some(examples, options.settings.get("prompts"))

    import torch

    from mcgrpo.generate.engines import load

    torch.set_num_threads(options.threads)
    if options.sealed:
        check_seal(options.model)
    engine = load(options.model, options.settings)
    write_jsonl(options.output, complete(engine, examples, options.prompt, options.settings, options.seed))
    seal(options.output)
