"""The audit of a data set, and of a test set beside a training set, on rows made to fail it."""

from dataclasses import replace

import pytest
from answers import plan_of
from runs import RUN

from mcgrpo.data import audit, overlap
from mcgrpo.data.overlap import normalised
from mcgrpo.files import read_json, write_json, write_jsonl
from mcgrpo.records import Example
from mcgrpo.study.planned import write_plan


def rows(*questions, split="test", answer="2"):
    return [Example(f"{split}-{i}", split, question, answer) for i, question in enumerate(questions)]


@pytest.mark.slow
def test_a_gold_that_cannot_be_read_is_told_from_one_that_is_badly_spelt():
    golds = [Example("malformed", "test", "A third?", "\\frac13"), Example("none", "test", "What?", "", "It is 204.")]
    found = audit.audit(golds, "math", None)["splits"]["test"]
    assert found["golds_not_correct"]["ids"] == ["malformed", "none"]
    assert found["golds_unparsable"]["ids"] == ["none"]


@pytest.mark.parametrize(
    ("gold", "is_told"),
    [
        ("１２", True),
        ("many", True),
        ("\u221212", True),
        ("12", False),
        ("1,200", False),
        ("-3.5", False),
        ("$4", False),
    ],
)
def test_a_gold_that_no_model_meets_is_told(gold, is_told):
    """Its plain form is graded against it; a gold of GSM8K is a number."""
    found = audit.audit(rows("How many?", answer=gold), "gsm8k", None)["splits"]["test"]
    assert found["golds_not_plain"] == {"count": is_told, "ids": ["test-0"] * is_told}


@pytest.mark.slow
def test_a_gold_of_math_is_compared_with_its_plain_form():
    """The grader reads a Unicode minus, and no full-width digits."""
    golds = [
        Example("wide", "test", "?", "１２"),
        Example("minus", "test", "?", "\u22123"),
        Example("x", "test", "?", "x²"),
    ]
    assert audit.audit(golds, "math", None)["splits"]["test"]["golds_not_plain"]["ids"] == ["wide"]


def test_normalised_keeps_what_tells_questions_apart():
    assert normalised("How much is 2 + 3?") == normalised("how much is  2 +3")
    assert normalised("A Two-Step way: 20-year, $x$.") == normalised("a two step way (20 year), x")
    texts = ["2 + 3", "2 + 4", "2 - 3", "2.5", "2 5", "x-1", "x+1", "x=1", "1/2", "12", "?", "!"]
    assert len({normalised(text) for text in texts}) == len(texts)


def called(main, monkeypatch, **options):
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    monkeypatch.setattr("sys.argv", ["data", *flags])
    main()
    return read_json(options["output"])


def test_the_command_compares_each_setting_with_its_benchmarks(tmp_path, monkeypatch, capsys):
    write_jsonl(tmp_path / "sums.jsonl", [*rows("One?", "Two?", split="train"), *rows("Six?")])
    write_jsonl(tmp_path / "exam.jsonl", rows("two", "Four?"))
    benchmarks = {"toy": {"sums": "in", "exam": "out"}}
    run = replace(RUN, setting="toy", dataset="sums")
    write_plan(tmp_path / "plan.json", replace(plan_of(["toy"], runs=[run]), benchmarks=benchmarks))
    places = {"plan": tmp_path / "plan.json", "data": tmp_path, "output": tmp_path / "overlap.json"}
    found = called(overlap.main, monkeypatch, **places)["toy"]
    assert capsys.readouterr().out == "toy: 1 of 2 questions of exam are trained on\n"
    assert found["sums"]["normalised"]["count"] == 0 and found["exam"]["normalised"]["ids"] == ["test-0"]


def test_the_command_lists_golds_that_do_not_grade_as_correct_and_repeated_questions(tmp_path, monkeypatch):
    golds = [*rows("One and one?", "Two and two?", "one  and ONE"), *rows("Six?", split="train", answer="")]
    write_jsonl(tmp_path / "s.jsonl", golds)
    write_json(tmp_path / "s.source.json", {"hub": "org/s", "revision": "c" * 40})
    places = {"data": tmp_path / "s.jsonl", "source": tmp_path / "s.source.json", "output": tmp_path / "s.audit.json"}
    found = called(audit.main, monkeypatch, task="gsm8k", workers=1, **places)
    assert found["source"] == {"hub": "org/s", "revision": "c" * 40}
    test, train = found["splits"]["test"], found["splits"]["train"]
    assert test["rows"] == 3 and test["golds_not_correct"] == {"count": 0, "ids": []}
    assert train["golds_not_correct"] == {"count": 1, "ids": ["train-0"]}
    assert test["repeated_questions"] == {"count": 1, "ids": ["test-2"]}
