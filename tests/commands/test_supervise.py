"""Snakemake itself, run by `mcgrpo progress --run`: what is on the screen, in files, and how it ends."""

import os
import signal
import subprocess
import sys
import time

import pytest
import studies
import yaml
from pretend_machine import PATIENCE_SECONDS

from mcgrpo.study.read import ROOT

SMALL = {**studies.load("mini"), "study": "small", "reports": "reports/small"}
SNAKEFILE = """
rule all:
    input: "a.txt", "b.txt"
rule good:
    output: "a.txt"
    log: "logs/good.log"
    shell: "sleep {config[pause]}; touch {output}"
rule bad:
    output: "b.txt"
    log: "logs/bad.log"
    shell: "(seq 100; echo the reason; exit {config[code]}) > {log} 2>&1; touch {output}"
"""
pytestmark = pytest.mark.slow


def begun(folder, shell="", code=""):
    """A process that shows the progress of a shell command, or of what Python code supervises."""
    (folder / "study.yaml").write_text(yaml.safe_dump(SMALL))
    command = ["-c", code] if code else ["-m", "mcgrpo.commands.progress", "study.yaml", "--run", "sh", "-c", shell]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, *command], cwd=folder, env=environment, **pipes)


class TestSnakemakeBesideIt:
    @pytest.fixture
    def here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        return tmp_path

    @pytest.fixture
    def start(self, here):
        def start(**config):
            (here / "study.yaml").write_text(yaml.safe_dump(SMALL))
            (here / "Snakefile").write_text(SNAKEFILE)
            values = [f"{key}={value}" for key, value in {"pause": 0, "code": 0, **config}.items()]
            command = ["snakemake", "--nolock", "--cores", "2", "--config", *values]
            command = [
                sys.executable,
                "-m",
                "mcgrpo.commands.progress",
                "study.yaml",
                "--run",
                sys.executable,
                "-m",
                *command,
            ]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            return subprocess.Popen(command, cwd=here, start_new_session=True, env=environment, **pipes)

        return start

    def test_its_output_goes_to_a_file_and_a_second_call_says_that_nothing_is_to_be_done(self, start, here):
        process = start()
        out = process.communicate()[0]
        log = here / "logs/small/snakemake.log"
        assert process.returncode == 0, out
        assert out.startswith("Snakemake writes to logs/small/snakemake.log\n") and "Building DAG" not in out
        assert "Building DAG" in log.read_text() and "Snakemake: 3 of 3 jobs" in out
        process = start()
        assert "\nNothing to be done" in process.communicate()[0] and process.returncode == 0

    def test_a_second_call_says_that_it_waits_and_leaves_the_output_of_the_first(self, start, here):
        first = start(pause=600, code=7)
        log = here / "logs/small/snakemake.log"
        while not (log.exists() and "Error in rule bad" in log.read_text()):
            assert first.poll() is None
            time.sleep(0.1)
        second = start()
        assert second.stdout.readline().startswith("waiting for another call that runs study small in this folder")
        assert "Error in rule bad" in log.read_text()
        os.killpg(first.pid, signal.SIGINT)
        out = first.communicate(timeout=PATIENCE_SECONDS)[0]
        assert first.returncode != 0 and "waiting" not in out
        out = second.communicate(timeout=PATIENCE_SECONDS)[0]
        assert second.returncode == 0, out
        assert "Error in rule bad" not in log.read_text() and "Snakemake: 3 of 3 jobs" in out

    def test_a_call_that_waits_is_interrupted_at_once(self, start, here):
        first = start(pause=600)
        while not (here / "b.txt").exists():
            assert first.poll() is None
            time.sleep(0.1)
        second = start()
        assert second.stdout.readline().startswith("waiting ")
        os.killpg(second.pid, signal.SIGINT)
        assert second.communicate(timeout=PATIENCE_SECONDS) == ("", None) and second.returncode == 130
        os.killpg(first.pid, signal.SIGINT)
        first.communicate(timeout=PATIENCE_SECONDS)

    def test_a_job_that_fails_is_named_with_the_end_of_its_log_and_the_exit_code_is_kept(self, start):
        process = start(code=7)
        out = process.communicate()[0]
        assert process.returncode == 1
        assert "FAILED: rule bad\n  the end of logs/bad.log:\n  | 87\n" in out and "  | the reason\n" in out
        assert out.count("FAILED") == 1
        assert "exit code 1; all of its output: logs/small/snakemake.log" in out

    def test_an_interrupt_ends_snakemake_and_its_jobs(self, start, here):
        process = start(pause=600)
        while not (here / "b.txt").exists():
            assert process.poll() is None
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out = process.communicate(timeout=PATIENCE_SECONDS)[0]
        assert process.returncode != 0 and "interrupted" in out
        assert not (here / "a.txt").exists()

    def test_a_screen_that_nobody_reads_any_more_ends_nothing(self, here):
        """As in `... | head -1`."""
        process = begun(here, "sleep 1; touch done; exit 7")
        assert process.stdout.readline() == "Snakemake writes to logs/small/snakemake.log\n"
        process.stdout.close()
        assert process.wait(PATIENCE_SECONDS) == 7 and (here / "done").exists()

    def test_a_screen_that_fails_says_so_once_and_the_command_goes_on(self, here):
        code = (
            "import sys\nfrom pathlib import Path\nfrom mcgrpo.study import read as study_file\n"
            "from mcgrpo.commands.progress.screen import Screen\n"
            "from mcgrpo.commands.progress.supervise import supervise\n"
            "screen = Screen(study_file.read([Path('study.yaml')]))\n"
            "screen.study = None\n"  # whatever makes looking fail
            "sys.exit(supervise(['sh', '-c', 'sleep 1; exit 7'], Path('log'), screen))\n"
        )
        process = begun(here, code=code)
        out = process.communicate(timeout=PATIENCE_SECONDS)[0]
        assert process.returncode == 7
        assert out.count("progress cannot be shown: AttributeError: ") == 1

    def test_warnings_are_said_once_each(self, here):
        lines = "echo 'warning: run a was not tracked'; echo ' warning: quoted'; sleep 1; echo 'warning: run a was not"
        process = begun(here, f"{lines} tracked'; printf 'warning: half'; sleep 1; printf ' a line'")
        out = process.communicate(timeout=PATIENCE_SECONDS)[0]
        assert process.returncode == 0
        warnings = [line for line in out.splitlines() if "warning" in line]
        assert warnings == ["warning: run a was not tracked", "warning: half a line"]

    def test_a_study_that_is_wrong_is_refused_before_snakemake_starts(self, start, here):
        (here / "wrong.yaml").write_text("study: x\nseedz: [0]\n")
        command = [sys.executable, "-m", "mcgrpo.commands.progress", "wrong.yaml", "--run", "snakemake"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 1 and done.stderr.startswith("error: ") and "seedz" in done.stderr
        assert not (here / "logs").exists()
