"""What the checks of an archive may take, in real processes."""

import subprocess
import sys
import time

import pytest

from mcgrpo.commands.evidence.limits import TookTooLongError, bounded
from mcgrpo.commands.evidence.regenerate import make_grades
from mcgrpo.files import write_jsonl

pytestmark = pytest.mark.slow

CONFIG = {"study": "hostile", "datasets": {"aime": {"task": "math"}}}
PLANNED = {"grading": ["paper"], "evaluations": {"run": ["aime"]}, "flips": {}, "runs": []}
MEMORY = """
import resource, sys
from mcgrpo.commands.evidence.limits import Limits, bound_memory
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
hard = now + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
bound_memory(Limits(memory_mb=512))
print((resource.getrlimit(resource.RLIMIT_AS)[0] - now) >> 20)
"""


def test_grading_ends_by_the_clock_though_other_processes_do_it(tmp_path):
    """Ten thousand completions of 5 seconds each: a processor's time of this process says nothing of them."""
    rows = ({"id": f"{n}", "sample": 0, "answer": "1", "completion": f"$\\boxed{{100000000! + {n}}}$"}
            for n in range(10_000))  # fmt: skip
    write_jsonl(tmp_path / "results/hostile/completions/run/aime.jsonl", rows)
    begun = time.monotonic()
    with (
        pytest.raises(TookTooLongError, match=r"more than 2 seconds \(--max-grading-seconds"),
        bounded(2, grading=True),
    ):
        make_grades(tmp_path, CONFIG, PLANNED, tmp_path / "made")
    assert time.monotonic() - begun < 120


@pytest.mark.parametrize(("allowed", "bound"), [(100, 100), (2000, 512)])
def test_memory_is_bounded_within_what_the_system_allows(allowed, bound):
    """As after `ulimit -v`."""
    done = subprocess.run([sys.executable, "-c", MEMORY, str(allowed)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert bound - 100 < int(done.stdout) <= bound + 100
