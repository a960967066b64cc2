"""Generate completions for benchmarks: one greedy and k sampled for each problem of the test split.

The settings are a study's `evaluation`; with `greedy: false` there is no greedy one, and with `prompts: n` a random
sample of n problems is used, the same for every run.

`python -m mcgrpo.generate --model FOLDER --data FILE --prompt plain --settings JSON --seed 0 --output FILE`

Several benchmarks of one model have as many `--data`, `--settings` and `--output`, in the same order: the engine starts
once. Each batch is a pure function of its prompts and its own seed.
"""

import argparse
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.data.prompts import as_prompt, render, token_ids
from mcgrpo.files import read_jsonl, write_jsonl
from mcgrpo.generate.lengths import fitted
from mcgrpo.generate.origin import Origin, is_drawn, record
from mcgrpo.records import Completion, Decoding, Example
from mcgrpo.sums import model_sum, seal, sha256


def batches(texts: Sequence[str], settings: dict[str, Any]) -> Iterator[tuple[Decoding, int, tuple[int, ...]]]:
    """The decoding, the sample and the positions of each batch.

    Prompts of a batch are of similar length; the same prompts first have a greedy one, if any, then those by sample.
    """
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    size = settings["batch_size"]
    for start in range(0, len(order), size):
        positions = tuple(order[start : start + size])
        if settings.get("greedy", True):
            yield "greedy", 0, positions
        yield from (("sampled", k, positions) for k in range(settings["samples"]))


def seed_of(seed: int, decoding: Decoding, sample: int, positions: tuple[int, ...]) -> int:
    """The seed of a batch, in [0, 2^31)."""
    digest = hashlib.sha256(repr((seed, decoding, sample, positions)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def complete(
    engine: Any, examples: Sequence[Example], prompt: str, settings: dict[str, Any], seed: int
) -> Iterator[Completion]:
    """The rows of a completions file: greedy ones first, then by sample, with problems in order."""
    prompts = [as_prompt(prompt, example.question) for example in examples]
    texts = render(prompts, engine.tokenizer, settings.get("chat_template_kwargs", {}))
    ids = token_ids(prompt, texts, engine.tokenizer)
    parts = [*batches(texts, settings)]
    asked = [([ids[position] for position in part[2]], part[0], seed_of(seed, *part)) for part in parts]
    rows = {
        (decoding, sample, position): row
        for (decoding, sample, positions), drawn in zip(parts, engine.complete(asked, settings), strict=True)
        for position, row in zip(positions, drawn, strict=True)
    }
    for (decoding, sample, position), (completion, reason) in sorted(rows.items()):
        example = examples[position]
        yield Completion(
            id=example.id,
            sample=sample,
            completion=completion,
            answer=example.answer,
            solution=example.solution,
            decoding=decoding,
            prompt_sha256=hashlib.sha256(texts[position].encode()).hexdigest(),
            finish_reason=reason,
            max_new_tokens=settings["max_new_tokens"],
            asked_new_tokens=settings.get("asked_new_tokens"),
        )


def some(examples: Sequence[Example], count: int | None) -> list[Example]:
    """A fixed random sample of `count` examples, in order; all examples if there are fewer."""
    if count is None or count >= len(examples):
        return list(examples)
    return [examples[index] for index in sorted(random.Random(0).sample(range(len(examples)), count))]


def main() -> None:
    """Generate completions for the test split of one or several benchmarks."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="a benchmark, resources/data/NAME.jsonl")
    parser.add_argument("--prompt", required=True, help="a template of mcgrpo.data.prompts")
    settings = "the study's `evaluation` of each benchmark, as JSON"
    parser.add_argument("--settings", type=json.loads, nargs="+", required=True, help=settings)
    parser.add_argument("--sums", type=Path, help="the list of the sums of its files, which are compared")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, nargs="+", required=True, help="the completions of each benchmark")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--code", default="", help="what tells this code from other code; without it all is drawn anew")
    options = parser.parse_args()
    if not len(options.data) == len(options.settings) == len(options.output):
        parser.error("there are as many --data as --settings and --output")
    with command_line.errors(ValueError):
        generate(options)


def generate(options: argparse.Namespace) -> None:
    """Write the completions that the command line asks for, but for those that are there (`mcgrpo.generate.origin`).

    Raises:
        ValueError: for data, a model or settings that do not do.
    """
    read = {path: read_jsonl(path, Example) for path in options.data}
    for path, examples in read.items():
        if not any(example.split == "test" for example in examples):
            raise ValueError(f"{path}: no example of split 'test'")
    left = [each for each in drawings(options) if not is_drawn(*each[2:])]
    if not left:
        return

    import torch

    from mcgrpo.generate.engines import load, load_tokenizer, prepare

    torch.set_num_threads(options.threads)
    prepare(left[0][1])
    tokenizer = load_tokenizer(options.model)
    fit = [fitted(asked, options.model, data, options.prompt, tokenizer) for data, asked, *_ in left]
    engine = load(options.model, fit[0])
    for (data, _, output, origin), settings in zip(left, fit, strict=True):
        if settings["max_new_tokens"] < (asked := settings["asked_new_tokens"]):
            print(
                f"{data}: of {asked} new tokens {settings['max_new_tokens']} fit beside the longest prompt", flush=True
            )
        examples = some([example for example in read[data] if example.split == "test"], settings.get("prompts"))
        write_jsonl(output, complete(engine, examples, options.prompt, settings, options.seed))
        seal(output)
        record(output, origin)


def drawings(options: argparse.Namespace) -> list[tuple[Path, dict[str, Any], Path, Origin]]:
    """Data, settings and output of each benchmark, and the origin that its completions will have.

    Raises:
        ValueError: for settings that need several engines.
    """
    if len({json.dumps(engine_settings(each), sort_keys=True) for each in options.settings}) > 1:
        raise ValueError("--settings: backend, dtype and vllm_* are of the engine, the same for all benchmarks")
    model = model_sum(options.model, options.sums)
    return [
        (data, settings, output, Origin(model, sha256(data), options.prompt, settings, options.seed, options.code))
        for data, settings, output in zip(options.data, options.settings, options.output, strict=True)
    ]


def engine_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Those that an engine starts with."""
    return {key: value for key, value in settings.items() if key in ("backend", "dtype") or key.startswith("vllm_")}
