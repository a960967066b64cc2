"""Snakemake as a user calls it, in a folder of its own."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CUT_DOWN = ["--configfile", str(ROOT / "config/mini.yaml"), str(ROOT / "config/cut-down.yaml")]


class Study:
    """A working directory, and the command line over it."""

    def __init__(self, folder: Path, configfiles: list[str] = CUT_DOWN):
        self.folder, self.configfiles = folder, configfiles

    def command(self, *arguments: str) -> list[str]:
        places = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(self.folder)]
        return [sys.executable, "-m", "snakemake", *self.configfiles, *places, "--cores", "2", *arguments]

    def copied(self, folder: Path) -> "Study":
        """The same elsewhere, with all its results."""
        return Study(Path(shutil.copytree(self.folder, folder)), self.configfiles)

    def changed(self, text: str) -> "Study":
        """The same with a study file of our own laid over it (values given with --config would all be strings)."""
        overlay = self.folder / f"change-{hash(text)}.yaml"
        overlay.write_text(text)
        return Study(self.folder, [*self.configfiles, str(overlay)])

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, cwd=ROOT)
        done.log = done.stdout + done.stderr
        return done

    def made(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.log
        return done.log

    def jobs(self, *arguments: str) -> dict[str, int]:
        """Rule -> number of jobs that a dry run plans."""
        log = self.made(*arguments, "--dry-run", "--quiet", "rules")
        if "Job stats:" not in log:
            return {}
        lines = log.split("Job stats:")[1].split("total")[0].splitlines()[3:]
        return {row.split()[0]: int(row.split()[1]) for row in lines if row.strip()}

    def killed_after(self, seconds: float, *arguments: str) -> bool:
        """Run, and SIGKILL Snakemake and all its jobs after some seconds; False if it had ended before."""
        end = time.monotonic() + seconds
        return self.killed_when(lambda: time.monotonic() >= end, *arguments)

    def killed_when(self, is_time: Callable[[], bool], *arguments: str) -> bool:
        """The same at the moment that `is_time` says."""
        process = subprocess.Popen(
            self.command("--quiet", "all", *arguments),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while process.poll() is None:
            if is_time():
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return True
            time.sleep(0.05)
        return False

    def tables(self) -> dict[str, bytes]:
        """All that must be the same to the byte whenever a study is run again."""
        folder = self.folder / "reports/quick"
        return {name: (folder / name).read_bytes() for name in ("tables.tex", "tables.md", "tables.csv", "headline.md")}


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Study:
    """The cut-down mini study, from nothing to its tables, once for all tests (which leave its results alone)."""
    study = Study(tmp_path_factory.mktemp("study"))
    study.made("--quiet", "rules")
    return study


@pytest.fixture
def empty(tmp_path) -> Study:
    """The same, before anything is run."""
    return Study(tmp_path)
