"""Grade completions: `python -m mcgrpo.grade --task gsm8k --input completions.jsonl --output grades.jsonl`.

Each input row has the fields of `mcgrpo.records.Completion` (`id`, `sample`, `completion`, `answer`, optionally
`solution`) and may have others. Each output row, in the same order, is the input row without its long texts, with
`extracted`, `verdict` and `gold_parsable` (and `note`, if a completion was not read or not judged). With several
protocols (`--protocol paper robust`) these are by the first, and those by another end in its name: `verdict_robust`. No
GPU is used.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.files import as_record, iter_json_lines, write_jsonl
from mcgrpo.grade.rewards import count_verdicts, is_accurate, judge
from mcgrpo.grade.task import Judgement, gold_text
from mcgrpo.grade.tasks import TASKS, get_task
from mcgrpo.grade.verifier import TIMEOUT, Verifier, WorkerError
from mcgrpo.records import PROTOCOLS, Completion, Example
from mcgrpo.sums import check_seal, seal

LONG_TEXTS = frozenset({"completion", "solution", "prompt", "question", "messages"})
_COLUMNS = tuple(field.name for field in dataclasses.fields(Completion))
_OURS = {f"{field.name}_{protocol}" for field in dataclasses.fields(Judgement) for protocol in PROTOCOLS}
"""Columns that grading alone writes: those of an input are left out."""


def read_completions(path: Path) -> list[tuple[Completion, dict[str, Any]]]:
    """Every row of a file, as a completion and unchanged. A number is accepted as an answer, and null as absent.

    Raises:
        RecordError: names the line and the error.
    """
    rows = []
    for where, row in iter_json_lines(path):
        columns = {name: row[name] for name in _COLUMNS if row.get(name) is not None}
        if isinstance(columns.get("answer"), int | float):
            columns["answer"] = str(columns["answer"])
        rows.append((as_record(Completion, columns, where), row))
    return rows


def grade(
    rows: Sequence[Completion], task: str, protocol: str = "paper", verifier: Verifier | None = None
) -> list[Judgement]:
    """Judge completions, in order."""
    return judge(
        task,
        [row.completion for row in rows],
        [row.answer for row in rows],
        [row.solution for row in rows],
        protocol=protocol,
        verifier=verifier,
    )


def self_check(examples: Sequence[Example], task: str, verifier: Verifier | None = None) -> list[str]:
    """Ids of examples whose own answer, graded as a completion, is not correct.

    For an example without a short answer, such as one of MATH, the whole solution is graded.
    """
    wrap = get_task(task).wrap
    texts = [wrap(gold_text(example.answer)) if example.answer else example.solution for example in examples]
    rows = [Completion(e.id, 0, text, e.answer, e.solution) for e, text in zip(examples, texts, strict=True)]
    judged = zip(rows, grade(rows, task, verifier=verifier), strict=True)
    return [row.id for row, judgement in judged if judgement.verdict != "correct" or not judgement.gold_parsable]


def report(rows: Sequence[Completion], judgements: Sequence[Judgement], task: str) -> str:
    """Text: the count of every verdict, the accuracy, notes, and the ids of golds that do not parse."""
    counts = count_verdicts(judgements)
    right = sum(is_accurate(judgement.verdict) for judgement in judgements)
    lines = [f"{len(rows)} completions: " + ", ".join(f"{count} {name}" for name, count in counts.items())]
    if rows:
        lines.append(f"accuracy {right / len(rows):.4f} ({right} of {len(rows)}, every other verdict counted against)")
    pairs = list(zip(rows, judgements, strict=True))
    if remark := get_task(task).remark([row.completion for row, judged in pairs if judged.verdict == "unparseable"]):
        lines.append(remark)
    for note, count in Counter(judged.note for judged in judgements if judged.note).items():
        lines.append(f"{count} {note}")
    if lost := sorted({row.id for row, judgement in pairs if not judgement.gold_parsable}):
        lines.append(f"golds that do not parse: {', '.join(lost)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Grade a file of completions (CPU only) and print the count of every verdict."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--task", required=True, help=f"{', '.join(TASKS)}, or module:attribute")
    parser.add_argument("--input", type=Path, required=True, help="JSON lines: id, sample, completion, answer")
    parser.add_argument("--output", type=Path, required=True, help="a row for each completion")
    parser.add_argument("--workers", type=int, help="processes for math (default: one per core, up to 8)")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds per completion for math (%(default)s)")
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        nargs="+",
        default=["paper"],
        help="`verdict` is by the first, `verdict_robust` by another, robust",
    )
    options = parser.parse_args(arguments)
    if options.input.resolve() == options.output.resolve():
        parser.error("--output is the file of --input, which would be overwritten")
    with command_line.errors(ValueError, WorkerError):
        get_task(options.task)
        verifier = Verifier(options.workers, options.timeout)
        check_seal(options.input)
        rows = read_completions(options.input)
        with verifier:
            completions = [completion for completion, _ in rows]
            judged = by_protocol(completions, options.task, options.protocol, verifier)
        write_jsonl(options.output, outputs([row for _, row in rows], judged))
        seal(options.output)
        for protocol, by_it in judged.items():
            print(f"protocol {protocol}: {report(completions, by_it, options.task)}")


def by_protocol(
    rows: Sequence[Completion], task: str, protocols: Sequence[str], verifier: Verifier | None
) -> dict[str, list[Judgement]]:
    """The judgements under each protocol; what two judge alike (math: `paper`, `released`) is judged once."""
    judged_as = {protocol: get_task(task).judged_as(protocol) for protocol in protocols}
    judged = {each: grade(rows, task, each, verifier) for each in dict.fromkeys(judged_as.values())}
    return {protocol: judged[each] for protocol, each in judged_as.items()}


def outputs(rows: Iterable[dict[str, Any]], judged: dict[str, list[Judgement]]) -> Iterator[dict[str, Any]]:
    """Rows without their long texts, with their judgements; columns of all protocols but the first end in its name."""
    first = next(iter(judged))
    for place, row in enumerate(rows):
        kept = {name: value for name, value in row.items() if name not in LONG_TEXTS | _OURS}
        for protocol, judgements in judged.items():
            end = "" if protocol == first else f"_{protocol}"
            kept |= {name + end: value for name, value in vars(judgements[place]).items() if name != "note" or value}
        yield kept
