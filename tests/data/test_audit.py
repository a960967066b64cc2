"""The audit of a data set, and of a test set beside a training set, on rows made to fail it."""

import subprocess
import sys

import pytest

from mcgrpo.data.audit import audit, form
from mcgrpo.data.overlap import normalised, overlap
from mcgrpo.files import read_json, write_json, write_jsonl
from mcgrpo.records import Example


def rows(*questions, split="test", answer="2"):
    return [Example(f"{split}-{i}", split, question, answer) for i, question in enumerate(questions)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("72", "integer"),
        ("-5", "integer"),
        ("2.5", "decimal"),
        ("1,400", "integer with commas"),
        ("10,\\!080", "integer with commas"),
        ("\\frac{14}{3}", "fraction"),
        ("\\frac43", "fraction"),
        ("3/4", "fraction"),
        ("137 \\frac{1}{2}", "mixed number"),
        ("4210_{5}", "number in a base"),
        ("90^\\circ", "unit or currency"),
        ("\\$18.90", "unit or currency"),
        ("\\left( 3, \\frac{\\pi}{2} \\right)", "interval or tuple"),
        ("[0, 4)", "interval or tuple"),
        ("1, -2", "list"),
        ("\\begin{pmatrix} 1 \\\\ -2 \\end{pmatrix}", "matrix"),
        ("\\text{Evelyn}", "text"),
        ("Evelyn", "text"),
        ("x = 5", "equation or relation"),
        ("x \\le 5", "equation or relation"),
        ("2\\sqrt{5}", "expression"),
        ("", "none"),
    ],
)
def test_forms_of_answers(answer, expected):
    assert form(answer) == expected


def test_golds_that_do_not_grade_as_correct_are_listed():
    found = audit([*rows("a?"), *rows("b?", split="train", answer="")], "gsm8k", {"folder": "x"})
    assert found["splits"]["test"]["golds_not_correct"] == {"count": 0, "ids": []}
    assert found["splits"]["train"]["golds_not_correct"] == {"count": 1, "ids": ["train-0"]}


@pytest.mark.slow
def test_a_gold_that_cannot_be_read_is_told_from_one_that_is_badly_spelt():
    golds = [Example("malformed", "test", "A third?", "\\frac13"), Example("none", "test", "What?", "", "No box.")]
    found = audit(golds, "math", None)["splits"]["test"]
    assert found["golds_not_correct"]["ids"] == ["malformed", "none"]
    assert found["golds_unparsable"]["ids"] == ["none"]


def test_repeated_questions_and_overlap():
    train = rows("One and one?", "Two and two?", "one  and ONE", split="train")
    test = rows("Two and two?", "two, and two", "Three?")
    found = audit([*train, *test], "gsm8k", None)
    assert found["splits"]["train"]["repeated_questions"] == {"count": 1, "ids": ["train-2"]}
    assert found["overlap"] == {
        "test": 3,
        "exact": {"count": 1, "ids": ["test-0"]},
        "normalised": {"count": 2, "ids": ["test-0", "test-1"]},
    }


def test_unusual_answers_depend_on_the_task():
    answers = [*rows("a?", answer="2.5"), *rows("b?", answer="2")]
    assert audit(answers, "gsm8k", None)["splits"]["test"]["unusual_answers"] == {
        "decimal": {"count": 1, "ids": ["test-0"]}
    }
    assert audit(answers, "math", None)["splits"]["test"]["unusual_answers"] == {}


def test_normalised_keeps_what_tells_questions_apart():
    assert normalised("How much is 2 + 3?") == normalised("how much is  2 +3")
    assert normalised("A Two-Step way: 20-year, $x$.") == normalised("a two step way (20 year), x")
    texts = ["2 + 3", "2 + 4", "2 - 3", "2.5", "2 5", "x-1", "x+1", "x=1", "1/2", "12", "?", "!"]
    assert len({normalised(text) for text in texts}) == len(texts)


def test_an_empty_training_set_overlaps_with_nothing():
    assert overlap([], rows("a?"))["normalised"]["count"] == 0


def test_the_command_compares_each_setting_with_its_benchmarks(tmp_path):
    write_jsonl(tmp_path / "sums.jsonl", [*rows("One?", "Two?", split="train"), *rows("Six?")])
    write_jsonl(tmp_path / "exam.jsonl", rows("two", "Four?"))
    benchmarks = {"toy": {"sums": "in", "exam": "out"}}
    plan = {"runs": [{"setting": "toy", "dataset": "sums"}], "benchmarks": benchmarks}
    write_json(tmp_path / "plan.json", plan)
    command = [
        sys.executable,
        "-m",
        "mcgrpo.data.overlap",
        "--plan",
        str(tmp_path / "plan.json"),
        "--data",
        str(tmp_path),
    ]
    done = subprocess.run([*command, "--output", str(tmp_path / "o.json")], capture_output=True, text=True, check=True)
    assert done.stdout == "toy: 1 of 2 questions of exam are trained on\n"
    found = read_json(tmp_path / "o.json")["toy"]
    assert found["sums"]["normalised"]["count"] == 0
    assert found["exam"]["normalised"]["ids"] == ["test-0"] and found["exam"]["exact"]["count"] == 0


def audit_command(tmp_path, task="gsm8k"):
    options = {"task": task, "data": tmp_path / "s.jsonl", "source": tmp_path / "s.source.json", "workers": 1}
    command = [sys.executable, "-m", "mcgrpo.data.audit", "--output", str(tmp_path / "s.audit.json")]
    command += [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_audits_a_file(tmp_path):
    write_jsonl(tmp_path / "s.jsonl", rows("One?", "one"))
    write_json(tmp_path / "s.source.json", {"hub": "org/s", "revision": "c" * 40})
    done = audit_command(tmp_path)
    assert done.returncode == 0, done.stderr
    found = read_json(tmp_path / "s.audit.json")
    assert found["source"] == {"hub": "org/s", "revision": "c" * 40}
    assert found["splits"]["test"]["repeated_questions"] == {"count": 1, "ids": ["test-1"]}
