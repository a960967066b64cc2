"""Audit of a data set: answers that are unreadable or out of reach, and repeated questions.

It is a job of its own, so that a change of the audit does not rebuild data and rerun trainings.

`python -m mcgrpo.data.audit --task math --data NAME.jsonl --source NAME.source.json --output NAME.audit.json`
"""

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.data.overlap import listed, normalised
from mcgrpo.files import RecordError, read_json, read_jsonl, write_json
from mcgrpo.grade.answers import TASKS, gold_text, number
from mcgrpo.grade.completions import WRAPPED, self_check
from mcgrpo.grade.rewards import is_accurate, judge
from mcgrpo.grade.verifier import Verifier, WorkerError
from mcgrpo.records import Example


def repeated(examples: Sequence[Example]) -> list[str]:
    """Ids of examples whose (normalised) question occurs earlier."""
    seen: set[str] = set()
    return [e.id for e in examples if (text := normalised(e.question)) in seen or seen.add(text)]


def audit(examples: Sequence[Example], task: str, source: Any, verifier: Verifier | None = None) -> dict[str, Any]:
    """The audit of a data set: its source, and the description of each split."""
    splits: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        splits[example.split].append(example)
    described = {name: describe(part, task, verifier) for name, part in splits.items()}
    return {"source": source, "task": task, "splits": described}


def describe(examples: Sequence[Example], task: str, verifier: Verifier | None = None) -> dict[str, Any]:
    """Describe one split: rows, golds that the grader does not parse or accept, or no model meets, repeated questions.

    Every gold is checked: the 7500 of MATH take about 13 seconds on one core.
    """
    failed = set(self_check(examples, task, verifier))
    suspects = [example for example in examples if example.id in failed]
    answers, solutions = [e.answer for e in suspects], [e.solution for e in suspects]
    judged = judge(task, [""] * len(suspects), answers, solutions, verifier=verifier)
    unparsable = [e.id for e, judgement in zip(suspects, judged, strict=True) if not judgement.gold_parsable]
    return {
        "rows": len(examples),
        "golds_unparsable": listed(unparsable),
        "golds_not_correct": listed(example.id for example in suspects),
        "golds_not_plain": listed(not_plain(examples, task, verifier)),
        "repeated_questions": listed(repeated(examples)),
    }


PLAIN = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x2212: "-", 0x2009: " ", 0x202F: " ", 0xA0: " "}
"""What a model writes in place of full-width forms, the minus sign and odd spaces."""


def plain(answer: str) -> str:
    """A gold as a model would write it."""
    shown = (each for each in answer.translate(PLAIN) if unicodedata.category(each) not in ("Cc", "Cf"))
    return "".join(shown).strip()


def not_plain(examples: Sequence[Example], task: str, verifier: Verifier | None = None) -> list[str]:
    """Ids of examples whose gold in its plain form is not accurate; of GSM8K also of those that are no number."""
    golds = {
        e.id: (e, text) for e in examples if e.answer and (text := plain(gold_text(e.answer))) != gold_text(e.answer)
    }
    wrap = WRAPPED[task]
    judged = judge(
        task,
        [wrap.format(text) for _, text in golds.values()],
        [e.answer for e, _ in golds.values()],
        [e.solution for e, _ in golds.values()],
        verifier=verifier,
    )
    missed = {id for id, each in zip(golds, judged, strict=True) if not is_accurate(each.verdict)}
    words = {e.id for e in examples if task == "gsm8k" and e.answer and number(gold_text(e.answer)) is None}
    return [e.id for e in examples if e.id in missed | words]


def main() -> None:
    """Audit one data set."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True, help="the origin of the data, NAME.source.json")
    parser.add_argument("--workers", type=int, help="processes for math (default: one per core, up to 8)")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with command_line.errors(RecordError, WorkerError), Verifier(options.workers) as verifier:
        examples, source = read_jsonl(options.data, Example), read_json(options.source)
        write_json(options.output, audit(examples, options.task, source, verifier))


if __name__ == "__main__":
    main()
