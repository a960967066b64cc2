"""A few hundred hostile archives through `mcgrpo verify`: `python bench/hostile_archives.py`.

Each must be refused with a verdict, within a minute and a gigabyte of memory, without writing a file, starting a
process or importing a module from the archive. The honest archive that they are made from must be verified. Exits with
an error that names each violation. `--archive` takes a bundle of bench/hostile_study.yaml; without it the study is run
first. `--only yaml` tries the attacks whose name starts with yaml, `--every 5` every fifth of them.
"""

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from attacks import Attack, structures
from forgeries import evidence, studies

from mcgrpo.commands.evidence import verify
from mcgrpo.files import read_json, write_json

SECONDS, MEBIBYTES = 60, 1024
PATIENCE_SECONDS = 1800
"""By the clock: on a busy machine a minute of a processor takes many."""
STUDY = Path(__file__).with_name("hostile_study.yaml")
SENTINELS = (
    "results/tiny/plan.json", "results/tiny/summary.csv", "plan.json", "summary.csv", "reports/tiny/tables.tex",
)  # fmt: skip
"""A reviewer's own files, in the folder that the check is called from."""
WRITES = tuple(
    f"os.{name}" for name in ("mkdir", "remove", "rmdir", "rename", "link", "symlink", "chmod", "truncate", "utime")
)
GRADER = "mcgrpo.grade.verify_worker"
"""What `--regrade` starts, and confines, for answers of MATH."""
STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "socket.connect", "subprocess.Popen")


class Outcome(NamedTuple):
    """What came of an archive: its exit code, its last line, what it did that it must not, and what it took."""

    code: int
    verdict: str
    did: list[str]
    seconds: float
    mebibytes: float


def watch(allowed: Path, report: Path) -> None:
    """Note whatever this process does to files outside a folder, and what it starts or imports that is an archive's."""
    noted = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def is_allowed(path: Any) -> bool:
        text = os.path.abspath(os.fsdecode(path)) if isinstance(path, str | bytes | os.PathLike) else ""  # noqa: PTH100
        return not text or text.startswith((str(allowed), "/dev/")) or "__pycache__" in text

    def hook(event: str, args: tuple[Any, ...]) -> None:
        bad = False
        if event == "open" and isinstance(args[2], int):
            bad = args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and not is_allowed(args[0])
        elif event in WRITES:
            below = any(isinstance(each, int) and each > 2 for each in args[1:])  # relative to an open folder
            bad = not below and not is_allowed(args[0])
        elif event in STARTS and not (event == "subprocess.Popen" and GRADER in args[1]):
            bad = not (event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec") and "git" in str(args))
            bad = bad and event != "os.fork"  # which subprocess.Popen does
        elif event == "import":
            bad = "evil" in str(args[0])
        if bad:
            os.write(noted, f"{event} {args!a:.200}\n".encode())

    sys.addaudithook(hook)


def check(path: Path, home: Path, *options: str) -> Outcome:
    """Verify an archive in a process of its own, from a reviewer's folder."""
    report, output, temporary = home / "report", home / "output", home / "tmp"
    temporary.mkdir(exist_ok=True)
    report.write_text("")
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
        os.chdir(home / "cwd")
        tempfile.tempdir = str(temporary)
        with output.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.argv = ["verify", str(path), *options]
        watch(temporary, report)
        code = 70
        try:
            verify.main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 71
        except BaseException as error:
            print(f"traceback: {error!r}")
        sys.stdout.flush()
        os._exit(code)
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() - begun > PATIENCE_SECONDS:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    lines = output.read_text(errors="replace").splitlines() or [""]
    did = report.read_text(errors="replace").splitlines()
    did += [f"left {each.name}" for each in temporary.iterdir()]
    return Outcome(os.waitstatus_to_exitcode(status), lines[-1], did, usage.ru_utime + usage.ru_stime,
                   usage.ru_maxrss / 1024)  # fmt: skip


def complaints(found: Outcome, is_honest: bool, home: Path, before: list[tuple]) -> Iterator[str]:
    """The violations."""
    wanted = (0, ": verified") if is_honest else (1, ": FAILED: ")
    if found.code != wanted[0] or wanted[1] not in found.verdict:
        yield f"exit code {found.code}, {found.verdict[:200]!a}"
    yield from found.did
    if found.seconds > SECONDS:
        yield f"{found.seconds:.0f} seconds of a processor"
    if found.mebibytes > MEBIBYTES:
        yield f"{found.mebibytes:.0f} MiB"
    if snapshot(home) != before:
        yield "files beside it have changed"


def snapshot(home: Path) -> list[tuple]:
    """The reviewer's folder and those above it, but for what is the check's own."""
    paths = [
        path for path in home.rglob("*") if path.name not in ("report", "output", "tmp") and "attack" not in path.name
    ]
    return sorted((str(path), path.is_file() and path.read_bytes()) for path in paths)


def honest_archive(folder: Path) -> Path:
    """The bundle of the study, run here; its trainings are said to be of a commit, as a work tree may be dirty."""
    root, study = STUDY.parent.parent, "tiny"
    targets = ["reports/tiny/tables.tex", "reports/tiny/claims.csv", "results/tiny/overlap.json",
               "resources/data/tiny/two-step.audit.json"]  # fmt: skip
    run = [sys.executable, "-m", "snakemake", *targets, "--snakefile", root / "Snakefile", "--quiet", "all"]
    subprocess.run([*run, "--cores", "2", "--configfile", STUDY], cwd=folder, check=True)
    for path in (folder / "results" / study / "runs").rglob("run.json"):
        record = read_json(path)
        record["outcome"]["commit"] = "0" * 40
        write_json(path, record)
    subprocess.run([sys.executable, "-m", "mcgrpo.cli", "bundle", STUDY, "--completions"], cwd=folder, check=True)
    return folder / "tiny-evidence.tar.xz"


def attacks(archive: Path, canary: Path, seed: int) -> Iterator[tuple[str, Attack]]:
    """All attacks, made of an honest archive; code that runs creates the canary."""
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        top = names[0].split("/")[0]
        files = {name.removeprefix(f"{top}/"): tar.extractfile(name).read() for name in names}
    yield from structures(archive.read_bytes(), random.Random(seed))
    yield from studies(files, top, str(canary))
    yield from evidence(files, top)


def run(archive: Path, home: Path, options: argparse.Namespace) -> list[str]:
    """Try every attack, print a table, and return violations."""
    for name in SENTINELS:
        (home / "cwd" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "cwd" / name).write_text("the reviewer's own\n")
    before, canary, path = snapshot(home), home / "canary", home / "attack.tar.xz"
    honest = ("honest", lambda path: path.write_bytes(archive.read_bytes()) and None)
    wanted = (each for each in attacks(archive, canary, options.seed) if each[0].startswith(options.only))
    cases = chain([honest], islice(wanted, 0, None, options.every))  # one after the other: some are large
    failures, table = [], defaultdict(list)
    for name, attack in cases:
        attack(path)
        found = check(path, home, "--regrade", "--max-grading-seconds", "15")
        wrong = [f"{name}: {line}" for line in complaints(found, name == "honest", home, before)]
        failures += wrong + ([f"{name}: code has run"] if canary.exists() else [])
        table[name.split(":")[0]].append((not wrong, found))
        if options.verbose:
            print(f"{found.seconds:5.1f} s {found.mebibytes:5.0f} MiB {name}: {found.verdict[-120:]}", flush=True)
    print(f"{'attack':12}{'archives':>9}{'as should be':>14}{'slowest, s':>12}{'largest, MiB':>14}")
    for kind, rows in table.items():
        slowest, largest = max(found.seconds for _, found in rows), max(found.mebibytes for _, found in rows)
        print(f"{kind:12}{len(rows):9}{sum(held for held, _ in rows):14}{slowest:12.1f}{largest:14.0f}")
    print(f"{sum(map(len, table.values()))} archives, {len(failures)} complaints")
    return failures


def main() -> None:
    """Run the check and exit with an error if there are violations."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--archive", type=Path, help="a bundle of bench/hostile_study.yaml; default: it is run first")
    parser.add_argument("--only", default="", metavar="NAME", help="attacks whose name starts so")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th attack only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="a line for each archive")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        archive = options.archive.absolute() if options.archive else honest_archive(Path(folder))
        failures = run(archive, home, options)
    sys.exit("\n".join(failures) or None)


if __name__ == "__main__":
    main()
