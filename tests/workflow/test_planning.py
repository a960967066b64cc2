"""What the DAG plans, and what stops it before anything runs. Dry runs only."""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from document import DOCUMENT
from studies import ROOT, changed, load, planned

from mcgrpo.commands.plan.__main__ import to_train, trainings
from mcgrpo.study import plan
from mcgrpo.study.methods import UNTRAINED

pytestmark = pytest.mark.slow

COMMAND = "snakemake --cores all --resources gpu=2 reports/tables.tex"
MINI = load("mini")
PAPER = ["config", "rehearsal"]
ANALYSE = ("plan", "collect", "summarise", "signals", "comparisons")
ONCE = ("all", *ANALYSE, "tables", "claims", "page", *DOCUMENT)
REPORT = dict.fromkeys(ONCE, 1) | {"figure": 12}
CHECKS = {"track": 1, "overlap": 1}


@pytest.fixture
def mini(empty):
    return empty.of(MINI)


def test_the_mini_study(mini, monkeypatch):
    monkeypatch.chdir(mini.folder)  # the repository may have results
    runs = sum(run.method != UNTRAINED for run in plan.runs(MINI))
    out = 2 * 2 * len(MINI["seeds"])  # GRPO and MC-GRPO at G=2 and 4 are evaluated there too
    evaluated = runs + 2 + out + 1  # and the untrained models, of which one is evaluated there
    assert len(to_train(trainings(MINI))) == runs  # what `mcgrpo plan` says
    assert mini.jobs() == REPORT | CHECKS | {
        "model": 2, "warm_start": 2, "dataset": 2, "audit": 2, "train": runs, "generate": evaluated - 2 * (out + 1),
        "generate_together_1": out + 1, "grade": evaluated, "rollouts": 2, "grade_rollouts": 2,
        "sign_flips": 2,
    }  # fmt: skip


def test_a_study_without_a_store_is_not_tracked(mini):
    assert "track" not in mini.changed("tracking_uri: null").jobs()


def test_a_figure_and_a_run_are_targets_of_their_own(mini):
    assert mini.jobs("reports/mini/figures/accuracy-sampled.pdf")["figure"] == 1
    run = "results/mini/runs/toy-qwen3/mc-grpo/G2/default/seed0"
    assert mini.jobs(run) == {"model": 1, "dataset": 2, "warm_start": 1, "train": 1}


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ("sedes: [1]", "unknown key 'sedes'; did you mean 'seeds'?"),
        ("seeds: [0]\nseeds: [1]", "line 2: the key 'seeds' is there already, in line 1"),
    ],
)
def test_a_mistake_in_the_study_file_stops_with_one_line(mini, change, culprit):
    done = mini.changed(change).run("--dry-run")
    assert done.returncode != 0
    (line,) = [line for line in done.log.splitlines() if line.startswith("error")]
    assert culprit in line


@pytest.mark.parametrize(
    ("target", "files", "options"),
    [("paper", "lock.yaml", "--resources gpu=8 --keep-going"), ("rehearsal", "lock.yaml config/rehearsal.yaml", "")],
)
def test_make_paper_and_its_rehearsal_run_the_whole_of_it_with_an_overlay(target, files, options):
    command = ["make", "--no-print-directory", "--dry-run", target, "GPUS=8", "OVERLAY=lock.yaml"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    (study,) = [line for line in said if "snakemake --cores all" in line]
    assert f"--configfile config/config.yaml {files}" in study and options in study


def test_make_paper_shows_the_report_of_the_overlay(tmp_path):
    files = "config/config.yaml config/two-80gb.yaml"
    command = ["make", "--no-print-directory", "--dry-run", "paper", f"OVERLAY={files.split()[1]}"]
    (shown,) = [
        line for line in subprocess.check_output(command, cwd=ROOT, text=True).splitlines() if "headline.md" in line
    ]
    (tmp_path / "reports/two-80gb").mkdir(parents=True)
    (tmp_path / "reports/two-80gb/headline.md").write_text("No difference was shown.\n")
    (tmp_path / "config").symlink_to(ROOT / "config")
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = subprocess.check_output(shown, shell=True, cwd=tmp_path, env=here, text=True)
    assert said.startswith("No difference was shown.\n") and "reports/two-80gb/report.html" in said


def test_the_papers_study():
    """Every job that the README's command should list, and no other."""
    options = ["--dry-run", "--forceall", "--quiet", "rules"]  # whatever has been run in the repository
    command = [Path(sys.executable).with_name("snakemake"), *COMMAND.split()[1:], *options]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    runs = 5 * (
        5 * 6 * 3  # settings x methods x G
        + 3  # GRPO+1
        + 2 * 3  # composite
        + 5  # injected flips
        + 2 * 2  # update-matched
        + 2 * 2 * 2 + 2 * 2 + 2 * 2  # released, mixed groups, best on test, of two settings
    )  # fmt: skip
    on_three = 5 * 3 * 2 * 2 + 3  # AIME and AMC for three settings, beside MATH-500: a job for the three
    models = runs + 5  # and the untrained ones
    assert planned(said) == {
        "plan": 1, "collect": 1, "summarise": 1, "comparisons": 1, "signals": 1, "tables": 1, "model": 5, "dataset": 5,
        "train": runs, "generate": models - on_three, "generate_together_1": on_three,
        "grade": models + 2 * on_three, "rollouts": 5, "grade_rollouts": 5, "sign_flips": 5,
    }  # fmt: skip


def test_a_benchmark_is_decoded_as_the_study_says(empty):
    paper = empty.of(load("config"))
    target = "results/paper/completions/qwen3-4b-math/mc-grpo/G2/default/seed0/math500.jsonl"
    done = paper.changed("seeds: [0]").run(target, "--dry-run", "--printshellcmds", "--resources", "gpu=2")
    (command,) = [line for line in done.log.splitlines() if "mcgrpo.generate" in line]
    words = shlex.split(command)
    options = {name: words[words.index(f"--{name}") + 1 :][:3] for name in ("data", "settings", "output")}
    each = [json.loads(text) for text in options["settings"]]
    assert [Path(file).stem for file in options["data"]] == ["aime24", "amc23", "math500"]
    assert [Path(file).stem for file in options["output"]] == ["aime24", "amc23", "math500"]
    assert [settings["max_new_tokens"] for settings in each] == [8000, 8000, 3072]
    assert all(settings["chat_template_kwargs"] == {"enable_thinking": True} for settings in each)


@pytest.mark.parametrize(("names", "gpus", "at_a_time"), [(["mini"], 0, 1), (PAPER, 2, 2), (PAPER, 4, 4)])
def test_trainings_start_until_their_gpus_can_all_evaluate(empty, names, gpus, at_a_time):
    config = functools.reduce(changed, map(load, names)) | {"gpus": gpus, "tracking_uri": None}
    log = empty.of(config).run("--dry-run", "--resources", f"gpu={gpus}").stdout
    job = r"^rule (train|generate).*:\n(?:    .+\n)*?    wildcards: run=([^,\n]+).*\n    priority: (.+)\n"
    priority = {(rule, run): int(number) for rule, run, number in re.findall(job, log, re.MULTILINE)}
    trained = sorted((run for rule, run in priority if rule == "train"), key=lambda run: -priority["train", run])
    assert len(trained) == sum(run.method != UNTRAINED for run in plan.runs(config))
    for turn, run in enumerate(trained):
        before = [each for each in trained if priority["train", each] > priority["generate", run]]
        assert before == trained[: turn + at_a_time]


def test_what_is_finished_is_reported_without_a_training(mini):
    """Before anything is run: the tables of a study of which nothing is there."""
    wanted = {"plan": 1, "collect": 1, "summarise": 1, "comparisons": 1, "signals": 1, "tables": 1}
    assert mini.jobs("reports/mini/tables.tex", "--config", "partial=true") == wanted
    assert mini.changed("partial: true").jobs("reports/mini/tables.tex") == wanted


def test_a_run_that_the_study_does_not_have_is_named(mini):
    done = mini.run("results/mini/runs/toy-qwen3/grpo/G5/default/seed0", "--dry-run")
    assert done.returncode != 0
    assert "study 'mini' has no run 'toy-qwen3/grpo/G5/default/seed0'" in done.log


@pytest.mark.parametrize(("asked", "limited"), [((), False), (("--max-jobs-per-timespan", "7/1s"), True)])
def test_snakemakes_default_rate_limit_is_off(empty, asked, limited):
    """It would keep a thread for each job that has ended."""
    said = 'onsuccess:\n    print("limited", workflow.scheduler.job_rate_limiter is not None)\n'
    flow = empty.folder / "flow"
    flow.write_text(f'include: "{ROOT}/Snakefile"\n{said}')
    log = empty.made("results/quick/plan.json", "--snakefile", str(flow), *asked)
    assert f"limited {limited}" in log
