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
import yaml
from forked import ROOT, forked_command
from studies import SNAKEMAKE, planned, snakemake, subset

CUT_DOWN = ["--configfile", str(ROOT / "config/mini.yaml"), str(ROOT / "config/cut-down.yaml")]


class Study:
    """A working directory, and the command line over it."""

    def __init__(self, folder: Path, configfiles: list[str] = CUT_DOWN):
        self.folder, self.configfiles = folder, configfiles

    def words(self, *arguments: str) -> list[str]:
        """What follows `snakemake` on the command line."""
        places = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(self.folder)]
        return [*self.configfiles, *places, "--cores", "2", *arguments]

    def command(self, *arguments: str) -> list[str]:
        """A command line that imports Snakemake anew."""
        return [sys.executable, "-m", "snakemake", *self.words(*arguments)]

    def copied(self, folder: Path) -> "Study":
        """The same elsewhere, with all its results."""
        return Study(Path(shutil.copytree(self.folder, folder)), self.configfiles)

    def changed(self, text: str) -> "Study":
        """The same with a study file of our own laid over it (values given with --config would all be strings)."""
        overlay = self.folder / f"change-{hash(text)}.yaml"
        overlay.write_text(text)
        return Study(self.folder, [*self.configfiles, str(overlay)])

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        done = snakemake(*self.words(*arguments))
        done.log = done.stdout + done.stderr
        return done

    def made(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.log
        return done.log

    def jobs(self, *arguments: str) -> dict[str, int]:
        """Rule -> number of jobs that a dry run plans."""
        done = self.run(*arguments, "--dry-run", "--quiet", "rules")
        assert done.returncode == 0, done.log
        return planned(done.log)

    def killed_when(self, is_time: Callable[[], bool], *arguments: str) -> bool:
        """Run, and SIGKILL Snakemake and all its jobs when `is_time` says; False if it had ended before."""
        pid_file = self.folder / "pid"
        pid_file.write_text("")
        words = self.words(*arguments, "--quiet", "all")
        command, environment = forked_command("snakemake", *words, imports=SNAKEMAKE, pid_file=pid_file)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, **quiet)
        while process.poll() is None:
            if (pid := pid_file.read_text()) and is_time():
                os.killpg(int(pid), signal.SIGKILL)
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
def finished(made_once) -> Study:
    """The cut-down mini study, from nothing to its tables, once for all tests (which leave its results alone)."""
    return Study(made_once("study", lambda folder: Study(folder).made("--quiet", "rules")))


@pytest.fixture(scope="session")
def reported(finished, made_once) -> Callable[[list[str]], tuple[Study, str]]:
    """Methods -> the study of these, reported from what is trained already, and what Snakemake said."""

    def study_of(folder: Path) -> Study:
        return Study(folder, ["--configfile", str(folder / "subset.yaml")])

    def reported(methods: list[str]) -> tuple[Study, str]:
        def make(folder: Path) -> None:
            shutil.copytree(finished.folder, folder, dirs_exist_ok=True)
            shutil.rmtree(folder / "reports")
            config = subset(methods) | {"tracking_uri": None}
            (folder / "subset.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
            (folder / "said").write_text(study_of(folder).made("reports/quick/report.html", "--quiet", "rules"))

        folder = made_once(f"study-{'+'.join(methods)}", make)
        return study_of(folder), (folder / "said").read_text()

    return reported


@pytest.fixture
def empty(tmp_path) -> Study:
    """The same, before anything is run."""
    return Study(tmp_path)
