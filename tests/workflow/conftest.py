"""Snakemake as a user calls it, in a folder of its own."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from forked import ROOT, forked_command
from pretend_machine import PATIENCE_SECONDS
from studies import SNAKEMAKE, planned, snakemake, subset

CUT_DOWN = (ROOT / "config/mini.yaml", ROOT / "config/cut-down.yaml")


class Study:
    """A working directory with study files, and the command line over it."""

    def __init__(self, folder: Path, files: Sequence[Path] = CUT_DOWN):
        self.folder, self.files = folder, files

    def words(self, *arguments: str) -> list[str]:
        """What follows `snakemake` on the command line."""
        places = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(self.folder)]
        return ["--configfile", *map(str, self.files), *places, "--cores", "2", *arguments]

    def copied(self, folder: Path) -> "Study":
        """The same elsewhere, with all its results."""
        return Study(Path(shutil.copytree(self.folder, folder)), self.files)

    def of(self, config: dict) -> "Study":
        """Another study in the same folder."""
        file = self.folder / "study.yaml"
        file.write_text(yaml.safe_dump(config, sort_keys=False))
        return Study(self.folder, [file])

    def changed(self, text: str) -> "Study":
        """The same with a study file of our own laid over it (values given with --config would all be strings)."""
        overlay = self.folder / f"change-{hash(text)}.yaml"
        overlay.write_text(text)
        return Study(self.folder, [*self.files, overlay])

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
                process.wait(PATIENCE_SECONDS)
                return True
            time.sleep(0.05)
        return False

    def tables(self) -> dict[str, bytes]:
        """All that must be the same to the byte whenever a study is run again."""
        folder = self.folder / "reports/quick"
        return {name: (folder / name).read_bytes() for name in ("tables.tex", "tables.md", "tables.csv", "headline.md")}


@pytest.fixture(scope="session")
def finished(made_once) -> Study:
    """The cut-down mini study, from nothing to its tables, once for all tests (which leave its results alone)."""
    return Study(made_once("study", lambda folder: Study(folder).made("--quiet", "rules")))


@pytest.fixture(scope="session")
def reported(finished, made_once) -> Callable[[list[str]], tuple[Study, str]]:
    """Methods -> the study of these, reported from what is trained already, and what Snakemake said."""

    def reported(methods: list[str]) -> tuple[Study, str]:
        def make(folder: Path) -> None:
            shutil.copytree(finished.folder, folder, dirs_exist_ok=True)
            shutil.rmtree(folder / "reports")
            said = Study(folder).of(subset(methods)).made("reports/quick/report.html", "--quiet", "rules")
            (folder / "said").write_text(said)

        folder = made_once(f"study-{'+'.join(methods)}", make)
        return Study(folder, [folder / "study.yaml"]), (folder / "said").read_text()

    return reported


@pytest.fixture
def empty(tmp_path) -> Study:
    """The same, before anything is run."""
    return Study(tmp_path)
