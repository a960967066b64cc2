"""A very small study on two pretend GPUs, and Snakemake with the profile as it is."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import yaml
from pretend_cluster import until
from studies import ROOT, small

STEPS, SAVE_STEPS = 20, 5  # long enough to be cancelled on the way
PATIENCE_SECONDS = 1800
OPTIONS = {  # the pretend cluster keeps no accounts, its jobs take seconds, its file system is this machine's
    "--slurm-status-command": "squeue",
    "--slurm-init-seconds-before-status-checks": "3",
    "--latency-wait": "10",
}
SUBMITTED = re.compile(r"SLURM jobid (\d+) \(log: (\S*/logs/slurm/rule_(\w+)/\S*\.log)\)")


def write_study(path: Path) -> None:
    """The cut-down mini study with two methods and one measurement of sign flips."""
    keys = {"study": "clustered", "reports": "reports/clustered", "seeds": [0], "gpus": 2, "save_steps": SAVE_STEPS}
    study = small({"main": {"methods": ["grpo", "mc-grpo"], "num_generations": [2]}, "sign-flips": {}}, **keys)
    study["training"]["max_steps"] = STEPS
    path.write_text(yaml.safe_dump(study))


class Study:
    """A working directory, and Snakemake over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def copied(self, folder: Path, without: str) -> "Study":
        """The same elsewhere, with all its results but those of one training."""
        study = Study(Path(shutil.copytree(self.folder, folder)))
        for kind in ("runs", "models"):
            shutil.rmtree(study.results / kind / without)
        return study

    def processes(self) -> list[psutil.Process]:
        """All that run in the study's folder."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                found += [process] if process.cwd() == str(self.folder) else []
        return found

    def left(self, seconds: float) -> list[list[str]]:
        """The command lines of what still runs in the study's folder after so long."""
        with suppress(TimeoutError):
            until(lambda: not self.processes(), seconds, "")
        return [process.cmdline() for process in self.processes()]

    @property
    def results(self) -> Path:
        return self.folder / "results/clustered"

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen]:
        """Call Snakemake, and kill it at the end; what it says goes to the file `said`."""
        places = ["--snakefile", ROOT / "Snakefile", "--directory", self.folder]
        options = ["--profile", ROOT / "workflow/profiles/slurm", *(part for pair in OPTIONS.items() for part in pair)]
        command = [sys.executable, "-m", "snakemake", *places, "--configfile", self.folder / "study.yaml", *options]
        own = {"MCGRPO_DEVICES": "pretend0,pretend1", "MCGRPO_LOCKS": str(self.folder / "locks")}
        with (self.folder / "said").open("w") as said:
            snakemake = subprocess.Popen(
                [*map(str, command), *arguments], stdout=said, stderr=said, cwd=ROOT, env={**os.environ, **own}
            )
        try:
            yield snakemake
        finally:
            snakemake.kill()
            snakemake.wait(PATIENCE_SECONDS)

    def end(self, snakemake: subprocess.Popen) -> str:
        """Wait for Snakemake and return what it said."""
        snakemake.wait(PATIENCE_SECONDS)
        return (self.folder / "said").read_text()

    def made(self, *arguments: str) -> str:
        with self.started(*arguments) as snakemake:
            said = self.end(snakemake)
        assert snakemake.returncode == 0, said
        return said

    def steps(self, run: str, kind: str = "runs") -> list[int]:
        """The optimizer steps that a training has logged."""
        file = self.results / kind / run / "metrics.jsonl"
        return [json.loads(line)["step"] for line in file.read_text().splitlines()] if file.exists() else []

    def until_training(self, run: str) -> None:
        """Until a training has something to go on from."""

        def saved() -> bool:
            return len(self.steps(run, "unfinished")) > SAVE_STEPS + 1

        until(saved, PATIENCE_SECONDS, f"{run} has not begun to train")


def submitted(said: str) -> dict[str, tuple[str, Path]]:
    """SLURM's number of each job -> its rule, and SLURM's log of it, by what Snakemake said."""
    return {job: (rule, Path(log)) for job, log, rule in SUBMITTED.findall(said)}
