"""`snakemake --logger mcgrpo`: what is shown of a real Snakemake, and how that ends."""

import os
import signal
import subprocess
import time

import pytest
import studies
import yaml
from forked import forked_command
from pretend_machine import PATIENCE_SECONDS

STUDY = {**studies.load("mini"), "study": "small", "reports": "reports/small"}
SNAKEFILE = """
import yaml
for handler in workflow.logger_manager.get_log_handlers():
    handler.study = yaml.safe_load(open("study.yaml")) if config["good"] else {"study": "broken"}
rule all:
    input: "a.txt", "b.txt", "first/headline.md"
rule good:
    output: "a.txt"
    shell: "sleep {config[pause]}; touch {output}"
rule answer:
    output: "first/headline.md", "first/gains.png"
    shell: "echo '**Does it?** Yes.\\nIn detail' | tee {output} > /dev/null"
rule bad:
    output: "b.txt"
    log: "logs/bad.log"
    shell: "(seq 100; echo the reason; exit {config[code]}) > {log} 2>&1; touch {output}"
"""
pytestmark = pytest.mark.slow


@pytest.fixture
def start(tmp_path):
    """Start Snakemake on two jobs of a study."""

    def start(*options, stdout=subprocess.PIPE, **config):
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY))
        (tmp_path / "Snakefile").write_text(SNAKEFILE)
        values = [f"{key}={value}" for key, value in {"pause": 0, "code": 0, "good": 1, **config}.items()]
        words = ["--cores", "2", "--logger", "mcgrpo", *options, "--config", *values]
        command, environment = forked_command("snakemake", *words, imports=studies.SNAKEMAKE)
        pipes = {"stdout": stdout, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
        return subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes)

    return start


def test_progress_is_shown_and_snakemakes_messages_are_in_its_log(start, tmp_path):
    out = (process := start()).communicate()[0]
    assert process.returncode == 0, out
    assert "trainings 0 of " in out and "Snakemake: 4 of 4 jobs" in out and "rule good" not in out
    assert "Does it? Yes. More: first\n" in out and "In detail" not in out
    (log,) = (tmp_path / ".snakemake/log").iterdir()
    assert "rule good" in log.read_text()
    assert "Nothing to be done" in start().communicate()[0]


def test_a_job_that_fails_is_named_with_the_end_of_its_log(start):
    out = (process := start(code=7)).communicate()[0]
    assert process.returncode == 1
    assert "FAILED: rule bad\n  the end of logs/bad.log:\n  | 87\n" in out and "  | the reason\n" in out
    assert out.count("FAILED") == 1


def test_a_dry_run_is_shown_as_snakemake_does(start):
    out = (process := start("--dry-run")).communicate()[0]
    assert process.returncode == 0 and "rule good:" in out and "trainings" not in out


def test_an_interrupt_ends_snakemake_and_its_jobs(start, tmp_path):
    process = start(pause=600)
    while not (tmp_path / "b.txt").exists():
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out = process.communicate(timeout=PATIENCE_SECONDS)[0]
    assert process.returncode != 0 and "Traceback" not in out
    assert not (tmp_path / "a.txt").exists()


def test_a_reader_that_leaves_ends_nothing(start, tmp_path):
    """As in `... | head -1`."""
    process = start(pause=3)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE_SECONDS) == 0 and (tmp_path / "a.txt").exists()


def test_progress_that_cannot_be_shown_is_an_error_once_and_ends_nothing(start):
    out = (process := start(good=0)).communicate()[0]
    assert process.returncode == 0 and out.count("KeyError: 'experiments'") == 1 and "4 of 4 steps" in out
