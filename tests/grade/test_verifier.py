import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from grader_processes import PATIENCE_SECONDS, TOWER, linux, one

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench import hostile
from bench.hostile import processor_seconds
from mcgrpo.grade.verifier import Verifier

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def quick():
    with Verifier(2, timeout=0.5) as two:
        two.start()
        yield two


@pytest.mark.parametrize(
    ("gold", "completion", "verdict", "extracted"),
    [
        ("\\frac{1}{2}", "so \\boxed{0.5}", "correct", "0.5"),
        ("\\frac{1}{2}", "so \\boxed{\\frac{2}{4}}", "correct", "\\frac{2}{4}"),
        ("36", "the final answer is $6^2$", "correct", "6^2"),
        ("5", "$\\boxed{4}$ no, $\\boxed{5}$", "correct", "5"),
        ("5", "\\boxed{4} no, \\boxed{5}", "wrong", "4,5"),
        ("27.0", "\\boxed{27}", "correct", "27"),
        ("073", "\\boxed{73}", "correct", "73"),
        ("5", "\\boxed{6}", "wrong", "6"),
        ("\\text{odd}", "\\boxed{\\text{even}}", "wrong", "\\text{even}"),
        ("\\frac{4}{3}", "\\boxed{\\frac43}", "unparseable", "\\frac43"),
        ("5", "I think it is 5", "unparseable", None),
        ("5", "", "unparseable", None),
        # verify is not symmetric: these two hold with the gold first
        ("1<x<2", "\\boxed{(1,2)}", "correct", "(1,2)"),
        ("5", "\\boxed{x=5}", "correct", "x=5"),
    ],
)
def test_verdicts_are_math_verifys(patient, gold, completion, verdict, extracted):
    judgement = one(patient, gold, completion)
    assert (judgement.verdict, judgement.extracted, judgement.gold_parsable) == (verdict, extracted, True)


def test_the_solution_is_the_gold_unless_it_contradicts_the_answer(patient):
    assert one(patient, "", "\\boxed{7}", "hence $\\boxed{7}$.").verdict == "correct"
    assert one(patient, "204", "\\boxed{204}", "so $180 + 24 = 204$. -someone").verdict == "correct"
    assert one(patient, "0.5", "\\boxed{50\\%}", "hence $\\boxed{50\\%}$").verdict == "correct"


def tried(verifier, answers, completions):
    """Verdicts, five times: on a busy machine half a second may be too short for a plain answer, but not each time."""
    for _ in range(5):
        yield [each.verdict for each in verifier.judge(answers, [""] * len(answers), completions)]


def test_order_is_kept_and_equal_rollouts_agree(quick):
    answers = [str(n % 7) for n in range(60)]
    completions = [TOWER if n == 30 else f"\\boxed{{{n % 5}}}" for n in range(60)]
    expected = ["timeout" if n == 30 else "correct" if n % 7 == n % 5 else "wrong" for n in range(60)]
    assert expected in tried(quick, answers, completions)


@linux
@pytest.mark.parametrize("body", ["9^{9^{9^{9}}}", "100000000!", "(" * 3000])
def test_a_completion_over_time_is_killed_and_the_next_is_not_hurt(quick, body):
    texts = ["\\boxed{4}", f"\\boxed{{{body}}}", "\\boxed{5}"]
    start, spent = time.monotonic(), processor_seconds(quick)
    for verdicts in tried(quick, ["5"] * 3, texts):
        assert time.monotonic() - start < PATIENCE_SECONDS
        assert processor_seconds(quick) - spent < 0.5 + 1
        if verdicts == ["wrong", "timeout", "correct"]:
            return
        start, spent = time.monotonic(), processor_seconds(quick)
    raise AssertionError(verdicts)


@linux
def test_one_completions_memory_is_not_the_nexts():
    with Verifier(1, timeout=5, memory_mb=24) as small:
        judged = small.judge(["5"] * 3, [""] * 3, ["\\boxed{4}", "\\boxed{" + "x+" * 150_000 + "x}", "\\boxed{5}"])
    assert [j.verdict for j in judged] in (["wrong", bad, "correct"] for bad in ("unparseable", "timeout", "error"))


@linux
@pytest.mark.parametrize(
    ("deed", "allowed"),
    [("bytes(16 << 20)", True), ("bytes(256 << 20)", False), ("open('touched', 'wb', 0).write(b'x')", False)],
)
def test_a_grader_is_confined(tmp_path, deed, allowed):
    code = f"from mcgrpo.grade.verify_worker import _confine; _confine(64)\n{deed}"
    assert (subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0) is allowed
    assert not [path for path in tmp_path.iterdir() if path.stat().st_size]


def test_from_many_threads_at_once(patient):
    found = {}

    def work(n):
        found[n] = [j.verdict for j in patient.judge([str(n)] * 2, [""] * 2, [f"\\boxed{{{n}}}", "\\boxed{-1}"])]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert found == {n: ["correct", "wrong"] for n in range(12)}


@linux
def test_many_hostile_completions():
    command = [sys.executable, hostile.__file__, "--count", "200", "--timeout", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rank_of_torchrun_grades(tmp_path):
    script = tmp_path / "rank.py"
    script.write_text(
        "from mcgrpo.grade.rewards import judge\n"
        "from mcgrpo.grade.verifier import Verifier\n"
        "texts = [r'\\boxed{2}', r'\\boxed{3}'] * 4\n"
        "graded = judge('math', texts, ['2'] * 8)\n"
        f"late = Verifier(timeout=3).judge(['2'], [''], [{TOWER!r}])\n"
        "for judgements in (graded, late):\n"  # each in one piece: both ranks write to one pipe
        "    print('| ' + ' '.join(j.verdict for j in judgements) + ' |')\n"
    )
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run([sys.executable, "-m", *launcher], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    said = re.findall(r"\| ([a-z ]+) \|", done.stdout)
    assert sorted(said) == ["correct" + " wrong correct" * 3 + " wrong"] * 2 + ["timeout"] * 2
