import json
import re
import subprocess
import sys

import pytest

from mcgrpo.analyse.measures import read_grades
from mcgrpo.files import write_jsonl
from mcgrpo.grade.completions import main, self_check
from mcgrpo.records import Example

ROW = {"id": "a", "sample": 0, "completion": "<answer>72</answer>", "answer": "72"}


def grade(tmp_path, rows, *options):
    source, output = tmp_path / "completions.jsonl", tmp_path / "grades.jsonl"
    write_jsonl(source, rows)
    main(["--input", str(source), "--output", str(output), *options])
    return [json.loads(line) for line in output.read_text().splitlines()]


def test_rows_keep_their_order_and_small_columns(tmp_path, capsys):
    rows = [
        ROW | {"decoding": "greedy", "prompt_sha256": "f00", "prompt": "long", "solution": None, "level": 3},
        ROW | {"sample": 1, "completion": "<answer>72.0</answer>", "answer": 72},
        ROW | {"id": "b", "completion": "\ud800 no tag"},
    ]
    grades = grade(tmp_path, rows, "--task", "gsm8k")
    assert grades[0] == {
        "id": "a",
        "sample": 0,
        "answer": "72",
        "decoding": "greedy",
        "prompt_sha256": "f00",
        "level": 3,
        "extracted": "72",
        "verdict": "correct",
        "gold_parsable": True,
    }
    assert [row["verdict"] for row in grades] == ["correct", "equivalent", "unparseable"]
    printed = capsys.readouterr().out
    assert "3 completions: 1 correct, 1 equivalent, 0 wrong, 1 unparseable, 0 timeout, 0 error" in printed
    assert "accuracy 0.6667 (2 of 3" in printed


@pytest.mark.slow
def test_math_lists_golds_that_do_not_parse_and_says_what_is_not_read(tmp_path, capsys):
    rows = [
        ROW | {"completion": "\\boxed{0.5}", "answer": "\\frac{1}{2}", "solution": "It is $\\boxed{\\frac{1}{2}}$."},
        ROW | {"completion": "\\boxed{27}", "answer": 27.0, "id": "amc"},
        ROW | {"completion": "\\boxed{27}", "answer": "", "id": "lost"},
        ROW | {"completion": "x" * 400_001, "id": "long"},
    ]
    grades = grade(tmp_path, rows, "--task", "math", "--workers", "1", "--timeout", "20")
    assert [row["verdict"] for row in grades] == ["correct", "correct", "unparseable", "unparseable"]
    assert [row["gold_parsable"] for row in grades] == [True, True, False, True]
    *read, unread = grades
    assert unread["note"] == "not read: longer than 400,000 characters" and not any("note" in row for row in read)
    printed = capsys.readouterr().out
    assert "1 not read: longer than 400,000 characters" in printed
    assert "1 gold_unparsable" in printed
    assert "golds that do not parse: lost" in printed


def test_gsm8ks_own_form_is_unparseable_and_counted(tmp_path, capsys):
    rows = [
        ROW | {"completion": completion, "sample": sample}
        for sample, completion in enumerate(
            ["so #### 72", "####$1,072", "#### none", "<answer>7</answer> #### 72", "72"]
        )
    ]
    grades = grade(tmp_path, rows, "--task", "gsm8k")
    assert [row["verdict"] for row in grades] == ["unparseable"] * 3 + ["wrong", "unparseable"]
    assert "2 of the unparseable completions hold an answer as GSM8K's own, `#### 7`" in capsys.readouterr().out


@pytest.mark.parametrize("output", ["completions.jsonl", "link.jsonl", "x/../completions.jsonl"])
def test_no_file_is_written_over(tmp_path, capsys, output):
    source = tmp_path / "completions.jsonl"
    write_jsonl(source, [ROW])
    before = source.read_bytes()
    (tmp_path / "x").mkdir()
    (tmp_path / "link.jsonl").symlink_to(source)
    with pytest.raises(SystemExit) as raised:
        main(["--task", "gsm8k", "--input", str(source), "--output", str(tmp_path / output)])
    assert raised.value.code == 2 and "would be overwritten" in capsys.readouterr().err
    assert source.read_bytes() == before


@pytest.mark.slow
def test_robust_is_graded_beside_the_papers_which_in_math_is_the_released(tmp_path):
    rows = [ROW | {"completion": "\\boxed{72.}"}, ROW | {"sample": 1, "completion": "it is 72"}]
    options = ["--task", "math", "--workers", "1", "--timeout", "20", "--protocol", "paper", "released", "robust"]
    graded = grade(tmp_path, rows, *options)
    paper, released, robust = ([row[f"verdict{end}"] for row in graded] for end in ("", "_released", "_robust"))
    assert paper == released == ["unparseable"] * 2 and robust == ["correct", "unparseable"]
    assert [(row["extracted"], row["extracted_robust"]) for row in graded] == [("72.", "72"), (None, None)]


def test_the_verdict_is_by_the_first_protocol(tmp_path, capsys):
    (row,) = grade(tmp_path, [ROW | {"completion": "#### 72"}], "--task", "gsm8k", "--protocol", "robust", "paper")
    assert (row["verdict"], row["verdict_paper"]) == ("correct", "unparseable")
    assert (row["gold_parsable"], row["gold_parsable_paper"]) == (True, True)
    assert re.findall(r"protocol (\w+): 1 completions: (.) correct", capsys.readouterr().out) == [
        ("robust", "1"),
        ("paper", "0"),
    ]


def test_verdicts_of_an_input_are_not_taken_for_those_of_protocols(tmp_path):
    rows = [ROW | {"verdict_robust": True, "verdict_released": "maybe", "sample": sample} for sample in range(3)]
    assert not {"verdict_robust", "verdict_released"} & grade(tmp_path, rows, "--task", "gsm8k")[0].keys()
    write_jsonl(path := tmp_path / "by-others.jsonl", [row | {"verdict": "correct", "extracted": None} for row in rows])
    ((verdict, *_),) = read_grades(path)["sampled"].values()
    assert (verdict.verdict, verdict.verdict_robust) == ("correct", None)


def test_no_rows_are_no_error(tmp_path, capsys):
    assert grade(tmp_path, [], "--task", "gsm8k") == []
    assert "0 completions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "culprit"),
    [
        (json.dumps(ROW) + "\n{broken\n", "completions.jsonl:2: not valid JSON"),
        (json.dumps({"id": "a", "sample": 0, "completion": "x"}), "completions.jsonl:1: field 'answer' is missing"),
        (json.dumps(ROW | {"completion": ["x"]}), "field 'completion' should be str"),
        (json.dumps(ROW | {"sample": "0"}), "field 'sample' should be int"),
        ("[1]", "a JSON object is expected"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_broken_input_is_named_and_nothing_is_written(tmp_path, content, culprit):
    source, output = tmp_path / "completions.jsonl", tmp_path / "grades.jsonl"
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SystemExit, match=culprit):
        main(["--task", "gsm8k", "--input", str(source), "--output", str(output)])
    assert not output.exists()


def test_the_command_line(tmp_path):
    command = [sys.executable, "-m", "mcgrpo.grade", "--task", "math", "--input", "none.jsonl", "--output", "out.jsonl"]
    for extra, culprit in (([], "none.jsonl: no such file"), (["--timeout", "0"], "must be positive")):
        done = subprocess.run([*command, *extra], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1
        assert culprit in done.stderr
        assert "Traceback" not in done.stderr


def example(identity, answer, solution=""):
    return Example(id=identity, split="test", question="?", answer=answer, solution=solution)


def test_golds_grade_as_correct_against_themselves_or_are_listed(patient):
    assert self_check([example("a", "72"), example("b", "1,450,000"), example("c", "")], "gsm8k") == ["c"]
    examples = [
        example("fraction", "\\frac{3}{4}", "three of four, $\\boxed{\\frac{3}{4}}$."),
        example("malformed", "\\frac34", "three of four, $\\boxed{\\frac34}$."),
        example("free text", "204", "we find $t = 24$ and $180 + 24 = 204$. -someone"),
        example("bold", "073", "so $d = \\boxed{\\textbf{(073)}}.$ -someone"),
        example("full stop", "104", "the ruler gives $CE = \\boxed{104.}$"),
        example("amc", "27.0"),
        example("nothing", ""),
    ]
    assert self_check(examples, "math", patient) == ["malformed", "nothing"]
