"""Ten thousand hostile completions through the MATH grader: `python bench/hostile.py --count 10000`.

Each must get a verdict within the time limit plus a second of CPU time (that other processes do not add to), with
constant memory, no file touched and no process left. Exits with an error that names each violation. `--count` and
`--timeout` make it shorter.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil

from mcgrpo.grade.verifier import Verifier
from mcgrpo.records import VERDICTS

TOKENS = (*"{}()[]^_!|&,;=<>+-*/%$\0 019xEIn", "\\frac", "\\sqrt", "\\boxed{", "\\\\", "\\text{", "\ud800", "\\left(")
GOLDS = ("5", "\\frac{1}{2}", "x^2+1", "(1,2)", "\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\text{odd}", "[0,\\infty)")


def hostile(rng: random.Random, target: Path) -> str:
    """One completion that tries to hang, crash, exhaust or control its grader; injections would create `target`."""
    size = int(10 ** rng.uniform(1, 4))
    shell = f"__import__('os').system('touch {target}')"
    bodies = (
        lambda: "^{".join(["9"] * min(size, 60)) + "}" * min(size - 1, 59),
        lambda: "(" * 4 + f"{size}" + "!)" * 4,
        lambda: f"{size}{size}{size}!",
        lambda: rng.choice(["(", "{", "\\frac{1}{1+", "\\sqrt{", "|", "\\left("]) * size,
        lambda: "\\sqrt{" * min(size, 400) + "2" + "}" * min(size, 400),
        lambda: rng.choice("19") * (size * 200),
        lambda: f"10^{{{size}{size}}} \\bmod {size}",
        lambda: "".join(rng.choices(TOKENS, k=size)),
        lambda: "5\0" * size,
        lambda: "\udfff\ud800" * size,
        lambda: rng.choice(
            [shell, f"\\text{{{shell}}}", f"eval({shell!r})", f"open('{target}','w')", f"`touch {target}`"]
        ),
        lambda: f'\\operatorname{{{shell}}}+sympify("{shell}")',
        lambda: "\\begin{pmatrix}" + " & ".join("1" * rng.randint(1, 3) for _ in range(size)) + " \\\\ " * size,
        lambda: "\\begin{pmatrix}" + "\\\\".join(["x & y^x & 3"] * min(size, 300)) + "\\end{pmatrix}",
        lambda: f"\\sum_{{n=1}}^{{{size}^{size}}} \\frac{{1}}{{n^n}}",
        lambda: f"\\int_0^{{{size}}} \\sin(x^x) e^{{x^{{{size}}}}} dx",
        lambda: f"(x+y+z+1)^{{{size}}} - (x+y)^{{{size}}}",
        lambda: ",".join(f"x_{{{i}}}<{i}" for i in range(min(size, 500))),
    )
    body = rng.choice(bodies)()
    frames = (
        "\\boxed{%s}",
        "$\\boxed{%s}$",
        "The final answer is $%s$. I hope it is correct.",
        "\\boxed{%s",
        "answer: $$%s$$",
    )
    noise = rng.choice(
        ("", "", "$x$ and " * 300, "$" * size, "\\[" * size, "answer is " * size, "\\boxed{" * (size // 7))
    )
    return noise + rng.choice(frames).replace("%s", body)


def resident_mb(process: psutil.Process) -> float:
    """Resident memory of a process, in MiB; 0 where it is gone."""
    try:
        return process.memory_info().rss / 2**20
    except psutil.NoSuchProcess:
        return 0.0


def descendants() -> set[psutil.Process]:
    """The processes below this one, including zombies."""
    return set(psutil.Process().children(recursive=True))


def processor_seconds(verifier: Verifier) -> float:
    """CPU time of a verifier's processes, and of those that they have replaced."""
    worker = verifier._process.pid if verifier._process else None
    seconds = 0.0
    for process in descendants():
        with suppress(psutil.NoSuchProcess):  # replaced just now: its parent counts it
            if worker in (process.pid, process.ppid()):
                seconds += sum(process.cpu_times()[:4])  # its own, and those of its children that have ended
    return seconds


def run(count: int, timeout: float, target: Path) -> list[str]:
    """Judge `count` completions, print measurements, and return violations."""
    rng = random.Random(0)
    verdicts: Counter[str] = Counter()
    slowest, memory, batch = 0.0, [], max(1, count // 20)
    began = time.monotonic()
    with Verifier(1, timeout) as verifier:
        for start in range(0, count, batch):
            texts = [hostile(rng, target) for _ in range(min(batch, count - start))]
            for text, answer in zip(texts, rng.choices(GOLDS, k=len(texts)), strict=True):
                verifier.start()
                before = processor_seconds(verifier)
                (judgement,) = verifier.judge([answer], [""], [text])
                slowest = max(slowest, processor_seconds(verifier) - before)
                verdicts[judgement.verdict] += 1
            memory.append((resident_mb(psutil.Process()), sum(map(resident_mb, descendants()))))
    took = time.monotonic() - began
    print(f"{count} hostile completions, limit {timeout} s: {took:.0f} s")
    print(f"the slowest took {slowest:.2f} s of CPU time")
    print(", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS))
    print("MiB resident, this process: " + " ".join(f"{own:.0f}" for own, _ in memory))
    print("MiB resident, its grader:   " + " ".join(f"{theirs:.0f}" for _, theirs in memory))
    middle = len(memory) // 2
    checks = {
        f"a verdict took {slowest:.2f} s of CPU time": slowest <= timeout + 1,
        f"{sum(verdicts.values())} verdicts for {count} completions": sum(verdicts.values()) == count,
        f"files were touched in {target.parent}": not list(target.parent.iterdir()),
        f"processes were left: {descendants()}": not descendants(),
        "this process grew": memory[-1][0] <= memory[middle][0] + 64,
        "the grader grew": memory[-1][1] <= max(theirs for _, theirs in memory[: middle + 1]) + 128,
    }
    return [failure for failure, held in checks.items() if not held]


def main() -> None:
    """Run the check and exit with an error if there are violations."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--timeout", type=float, default=0.5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failures = run(options.count, options.timeout, Path(folder, "touched"))
    sys.exit("; ".join(failures) or None)


if __name__ == "__main__":
    main()
