import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcgrpo.grade import verifier as verifier_module
from mcgrpo.grade.answers import Judgement
from mcgrpo.grade.verifier import MAX_CHARACTERS, Verifier, WorkerError
from mcgrpo.records import VERDICTS

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60
"""For what is killed after half a second, and would go on for ever."""
TOWER = "\\boxed{9^{9^{9^{9}}}}"
HOSTILE = Path(__file__).parents[2] / "bench" / "hostile.py"
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def patient():
    with Verifier(1, timeout=20) as one:
        yield one


@pytest.fixture(scope="module")
def quick():
    with Verifier(2, timeout=0.5) as two:
        two.start()
        yield two


def one(verifier, answer, completion, solution=""):
    return verifier.judge([answer], [solution], [completion])[0]


def below(pid):
    """The processes below one, as {pid: state}."""
    rows = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        rows[int(path.parent.name)] = (int(parent), state)
    found = [pid]
    for one in found:
        found += [child for child, (parent, _) in rows.items() if parent == one]
    return {child: rows[child][1] for child in found[1:]}


def processor_seconds(verifier):
    """Of all its processes, those that have ended included: unlike the clock, the same on a busy machine."""
    seconds = 0.0
    for worker in verifier._all:
        for pid in (worker._process.pid, *below(worker._process.pid)):
            with suppress(OSError):  # replaced just now: its parent counts it
                times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
                seconds += sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    return seconds


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


@pytest.mark.parametrize(("answer", "solution"), [("", ""), ("", "The answer is 204."), ("", "see above")])
def test_a_gold_that_does_not_parse(patient, answer, solution):
    judgement = one(patient, answer, "\\boxed{204}", solution)
    assert (judgement.verdict, judgement.gold_parsable) == ("unparseable", False)


def test_order_is_kept_and_equal_rollouts_agree(quick):
    answers = [str(n % 7) for n in range(60)]
    completions = [TOWER if n == 30 else f"\\boxed{{{n % 5}}}" for n in range(60)]
    expected = ["timeout" if n == 30 else "correct" if n % 7 == n % 5 else "wrong" for n in range(60)]
    assert [j.verdict for j in quick.judge(answers, [""] * 60, completions)] == expected


def test_many_rollouts_of_one_gold(quick):
    completions = [f"\\boxed{{{n % 50}}}" for n in range(200)]
    verdicts = [j.verdict for j in quick.judge(["7"] * 200, [""] * 200, completions)]
    assert verdicts == ["correct" if n % 50 == 7 else "wrong" for n in range(200)]


def test_a_gold_is_parsed_once_for_its_rollouts(patient):
    slow = " and ".join(f"$\\boxed{{\\frac{{{n}}}{{7}}}}$" for n in range(1500))
    one(patient, "1", "\\boxed{1}", slow)
    start = time.monotonic()
    one(patient, "2", "\\boxed{1}", slow)
    single = time.monotonic() - start
    start = time.monotonic()
    patient.judge(["3"] * 20, [slow] * 20, [f"\\boxed{{{n}}}" for n in range(20)])
    assert time.monotonic() - start < 5 * single


@linux
@pytest.mark.parametrize("body", ["9^{9^{9^{9}}}", "100000000!", "(" * 3000])
def test_a_completion_over_time_is_killed_and_the_next_is_not_hurt(quick, body):
    start, spent = time.monotonic(), processor_seconds(quick)
    judged = quick.judge(["5"] * 3, [""] * 3, ["\\boxed{4}", f"\\boxed{{{body}}}", "\\boxed{5}"])
    assert [j.verdict for j in judged] == ["wrong", "timeout", "correct"]
    assert time.monotonic() - start < PATIENCE_SECONDS
    assert processor_seconds(quick) - spent < 0.5 + 1


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


def test_a_completion_beyond_any_models_length_is_not_read(quick):
    judgement = one(quick, "5", " " * MAX_CHARACTERS + "\\boxed{5}")
    assert (judgement.verdict, judgement.gold_parsable) == ("unparseable", True)


def test_from_many_threads_at_once(quick):
    found = {}

    def work(n):
        found[n] = [j.verdict for j in quick.judge([str(n)] * 2, [""] * 2, [f"\\boxed{{{n}}}", "\\boxed{-1}"])]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: ["correct", "wrong"] for n in range(12)}


@linux
@pytest.mark.parametrize("level", [0, 1])
def test_a_dead_process_is_replaced(level):
    others = set(below(os.getpid()))
    with Verifier(1, timeout=20) as fragile:
        assert one(fragile, "5", "\\boxed{5}").verdict == "correct"
        supervisor_and_grader = sorted(set(below(os.getpid())) - others)
        os.kill(supervisor_and_grader[level], signal.SIGKILL)
        verdicts = [j.verdict for j in fragile.judge(["5"] * 3, [""] * 3, ["\\boxed{4}", "\\boxed{5}", "\\boxed{6}"])]
        assert verdicts == ["wrong", "correct", "wrong"]
        assert one(fragile, "5", "\\boxed{5}").verdict == "correct"


@contextmanager
def killing(level, times, after=0.0):
    """Kill the processes of a level below this one (0: supervisors, 1: graders) once they are some seconds old."""
    others, seen, killed, over = set(below(os.getpid())), {}, set(), threading.Event()

    def is_grader(pid):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) != os.getpid()

    def kill():
        while not over.wait(0.005) and len(killed) < times:
            for pid in set(below(os.getpid())) - others - killed:
                with suppress(OSError):
                    if time.monotonic() - seen.setdefault(pid, time.monotonic()) >= after and is_grader(pid) == level:
                        os.kill(pid, signal.SIGKILL)
                        killed.add(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@linux
@pytest.mark.parametrize("level", [0, 1])
def test_a_process_killed_from_outside_costs_no_verdict(level):
    with Verifier(1, timeout=20) as fragile:
        if level:
            fragile.start()
        with killing(level, times=1) as killed:  # before it is ready, as the first one starts
            assert one(fragile, "5", "\\boxed{5}").verdict == "correct"
            while not killed:  # it may be judged before it is killed
                assert one(fragile, "5", "\\boxed{5}").verdict == "correct"


@linux
@pytest.mark.parametrize("level", [0, 1])
def test_a_process_killed_at_work_is_asked_again(level):
    others = set(below(os.getpid()))
    with Verifier(1, timeout=6) as fragile:
        one(fragile, "5", "\\boxed{5}")
        supervisor_and_grader = sorted(set(below(os.getpid())) - others)
        threading.Timer(0.5, os.kill, (supervisor_and_grader[level], signal.SIGKILL)).start()
        judged = fragile.judge(["5"] * 2, [""] * 2, [TOWER, "\\boxed{5}"])
        assert [one.verdict for one in judged] == ["timeout", "correct"]


@linux
def test_a_grader_killed_twice_over_one_completion_says_so():
    with Verifier(1, timeout=20) as fragile, killing(1, times=2, after=3) as killed:
        slow, right = fragile.judge(["5"] * 2, [""] * 2, [TOWER, "\\boxed{5}"])
        assert len(killed) == 2
    assert slow == Judgement("error", None, note="not judged: its process was killed from outside twice")
    assert right == Judgement("correct", "5")


@linux
def test_a_worker_that_is_killed_every_time_is_an_error_and_no_verdict():
    with Verifier(1, timeout=20) as fragile, killing(0, times=10**6) as killed:
        with pytest.raises(WorkerError, match="killed 3 times"):
            one(fragile, "5", "\\boxed{5}")
        assert len(killed) == 3


@linux
def test_a_stopped_worker_is_killed_and_replaced():
    others = set(below(os.getpid()))
    with Verifier(1, timeout=0.5) as stuck:
        one(stuck, "5", "\\boxed{5}")
        stopped = set(below(os.getpid())) - others
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        start = time.monotonic()
        assert one(stuck, "5", "\\boxed{5}").verdict == "timeout"
        assert time.monotonic() - start < PATIENCE_SECONDS
        assert not stopped & set(below(os.getpid()))
        assert one(stuck, "5", "\\boxed{5}").verdict == "correct"


@linux
def test_a_call_that_a_signal_ends_waits_for_no_completion():
    class EndedError(Exception):
        pass

    def end(*_):
        raise EndedError

    before = signal.signal(signal.SIGALRM, end)
    try:
        with Verifier(workers=2, timeout=600) as verifier:
            verifier.start()
            signal.setitimer(signal.ITIMER_REAL, 2)
            begun = time.monotonic()
            with pytest.raises(EndedError):
                verifier.judge(["1"] * 99, [""] * 99, [f"$\\boxed{{100000000! + {n}}}$" for n in range(99)])
            assert time.monotonic() - begun < 300
            assert one(verifier, "2", "\\boxed{2}").verdict == "correct"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_nothing_is_left_behind():
    before = below(os.getpid())
    with Verifier(2, timeout=0.3) as brief:
        brief.judge(["5", "6"], ["", ""], [TOWER, "\\boxed{6}"])
        assert len(below(os.getpid())) > len(before)
    assert below(os.getpid()) == before


@linux
@pytest.mark.parametrize("end", ["pass", "os._exit(0)", "os.kill(os.getpid(), 9)", "1 / 0"])
def test_workers_end_with_their_parent(end):
    code = (
        "import os, threading, time; from mcgrpo.grade.verifier import Verifier\n"
        "verifier = Verifier(1, timeout=1); verifier.start(); print(verifier._all[0]._process.pid, flush=True)\n"
        f"threading.Thread(target=verifier.judge, args=(['5'], [''], [{TOWER!r}]), daemon=True).start()\n"
        f"time.sleep(0.3); {end}"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _group_lives(int(done.stdout)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_forked_child_has_workers_of_its_own():
    parent = verifier_module.shared()
    assert one(parent, "5", "\\boxed{5}").verdict == "correct"
    child = os.fork()
    if not child:
        try:
            mine = verifier_module.shared()
            right = mine is not parent and one(mine, "5", "\\boxed{5}").verdict == "correct"
            mine.close()
        finally:
            os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert one(parent, "6", "\\boxed{6}").verdict == "correct"
    parent.close()


def test_a_worker_that_cannot_start_is_an_error_not_a_zero(monkeypatch):
    broken = Verifier(1)
    monkeypatch.setattr(broken._all[0], "_command", [sys.executable, "-c", "import no_such_module"])
    with pytest.raises(WorkerError, match="did not start"):
        one(broken, "5", "\\boxed{5}")


@pytest.mark.parametrize("options", [{"timeout": 0}, {"memory_mb": -1}, {"workers": -1}])
def test_limits_must_be_positive(options):
    with pytest.raises(ValueError, match="positive"):
        Verifier(**options)


def test_injections_run_nowhere(quick, tmp_path):
    target = tmp_path / "touched"
    shell = f"__import__('os').system('touch {target}')"
    bodies = [shell, f"\\text{{{shell}}}", f"open('{target}','w')", f"eval({shell!r})", f"S({shell!r})", f"x.{shell}"]
    completions = [frame % body for body in bodies for frame in ("\\boxed{%s}", "final answer is $%s$", "\\boxed{1+%s")]
    judged = quick.judge(["5"] * len(completions), [shell] * len(completions), completions)
    assert {j.verdict for j in judged} <= {"wrong", "unparseable", "error", "timeout"}
    assert list(tmp_path.iterdir()) == []


PIECES = [
    "9^{",
    "{",
    "}",
    "(",
    ")",
    "!",
    "\\frac",
    "\\sqrt{",
    "\\boxed{",
    "$",
    "\\[",
    "\0",
    "\ud800",
    "\\\\",
    "&",
    "x",
    "0",
]
PIECES += [
    "\\begin{pmatrix}",
    "\\end{pmatrix}",
    "\\int_0^",
    "\\sum",
    "=",
    "<",
    ",",
    "answer is ",
    "%",
    "\\text{",
    "1e9",
    "_",
]


@linux
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(PIECES) | st.text(st.characters(codec=None), max_size=5), max_size=40), st.integers(1, 40)
)
def test_any_text_gets_a_verdict_in_time(quick, pieces, times):
    start, spent = time.monotonic(), processor_seconds(quick)
    judgement = one(quick, "\\frac{1}{2}", "\\boxed{" + "".join(pieces) * times + "}")
    assert time.monotonic() - start < PATIENCE_SECONDS
    assert processor_seconds(quick) - spent < 0.5 + 1
    assert judgement.verdict in VERDICTS
    assert judgement.gold_parsable
    (judgement.extracted or "").encode("utf-8")


@linux
@pytest.mark.slow
def test_hundreds_of_hostile_completions():
    command = [sys.executable, str(HOSTILE), "--count", "400", "--timeout", "0.3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_reading_faster_reads_the_same():
    code = r"""
from latex2sympy2_extended import latex2sympy
from sympy import srepr
from mcgrpo.grade.math_grader import speed_up

def read(latex):
    try:
        return srepr(latex2sympy(latex))
    except Exception as error:
        return type(error).__name__

pieces = ["0", "007", "1,000", "2.50", "12345678901234567890", "9" * 5000, r"\frac{1}{2}", r"\sqrt{8}", "x", "f(x)"]
signs = ["-", "+", "=", "<", ",", "(", ")", "^", "_", r"\pi", "%", "!", r"\cup", "[", "]", r"\text{a}", "|", "i"]
texts = [*pieces, *(a + b + c for a in [*pieces, *signs[:4]] for b in signs for c in ["0", "1,000", r"\sqrt{8}", "x"])]
slow = list(map(read, texts))
speed_up()
fast = list(map(read, texts))
assert slow == fast, [(t, s, f) for t, s, f in zip(texts, slow, fast) if s != f][:3]
assert len(set(slow)) > 200
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_comparing_rationals_faster_compares_the_same():
    code = r"""
from itertools import product
from math_verify import grader
from sympy import Integer, Rational, pi
from mcgrpo.grade.math_grader import speed_up

numbers = [Integer(0), Integer(-3), Integer(10**30), Integer(10**30 + 1), Rational(1, 3), Rational(333333, 10**6), pi]
slow = [grader.sympy_symbolic_eq(a, b) for a, b in product(numbers, repeat=2)]
speed_up()
assert slow == [grader.sympy_symbolic_eq(a, b) for a, b in product(numbers, repeat=2)]
assert sum(slow) == len(numbers)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_every_rank_of_torchrun_grades(tmp_path):
    script = tmp_path / "rank.py"
    script.write_text(
        "from mcgrpo.grade.rewards import judge\n"
        "texts = [r'\\boxed{2}', r'\\boxed{3}', r'\\boxed{9^{9^{9^{9}}}}'] * 4\n"
        "print('|', *(j.verdict for j in judge('math', texts, ['2'] * 12)), '|')\n"
    )
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run([sys.executable, "-m", *launcher], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    ranks = re.findall(r"\| ([a-z ]+) \|", done.stdout)
    assert len(ranks) == 2
    assert all(rank.split()[:2] == ["correct", "wrong"] and rank.split() == rank.split()[:3] * 4 for rank in ranks)
