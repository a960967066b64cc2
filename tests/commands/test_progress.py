"""The progress of a study, from files such as its jobs leave."""

import errno
import fcntl
import os
import platform
from functools import partial
from pathlib import Path

import pytest
from progress_files import FIRST, NOW, SECOND, SMALL, begin, end, named, shown, write
from rich.console import Console
from studies import load

from mcgrpo.commands.progress.jobs import TRAIN, jobs
from mcgrpo.commands.progress.left import left
from mcgrpo.commands.progress.screen import Screen
from mcgrpo.commands.progress.state import Study
from mcgrpo.study.paths import StudyFiles
from mcgrpo.tracking import MACHINE

ROOT = Path(__file__).parents[2]
FAILED = (
    "ValueError: no",
    "error: grades.jsonl:3: not valid JSON",
    "python -m mcgrpo.grade: error: unrecognized arguments",
    "mcgrpo.launch.preload: the server died while mcgrpo.generate ran; the job was killed",
)  # as logs of failed jobs end


def status_of(name, rule=TRAIN, now=NOW):
    return {job.name: how for job, how in Study(SMALL).read(now).items() if job.rule == rule}[name]


class TestStatus:
    def test_the_logs_are_those_of_the_rules(self):
        rules = "".join((ROOT / f"workflow/rules/{name}.smk").read_text() for name in ("train", "evaluate"))
        for rule in {job.rule for job in jobs(load("mini"))}:
            assert f'FILES.log("{rule}", "{{run}}' in rules and f'RESULTS.benchmark("{rule}", "{{run}}' in rules

    def test_nothing_is_done_before_a_study_has_started(self, here):
        text = shown()
        assert "trainings    0 of 4 done\n" in text and "evaluations  0 of 5 done\n" in text
        assert text.endswith("14 jobs left, nothing is running")

    def test_what_is_done_is_counted_and_what_runs_is_named_with_its_step(self, here):
        trainings = named(TRAIN)
        end(trainings[FIRST], 80.0, NOW - 10)
        end(named("generate")[f"{FIRST}/two-step"], 5.0, NOW - 5)
        end(named("grade")[f"{FIRST}/two-step"], 1.0, NOW - 4)
        begin(trainings[SECOND], steps=23)
        text = shown()
        assert f"trainings    1 of 4 done, 1 running\n  {SECOND}  step 23 of 40\n" in text
        assert "evaluations  1 of 5 done\n" in text

    def test_a_training_under_other_hyper_parameters_is_not_done(self, here):
        job = named(TRAIN)[FIRST]
        end(job, 80.0, training={**job.run.training, "max_steps": 7})
        assert status_of(FIRST).state == "waiting"

    def test_a_line_that_is_being_written_is_no_step_yet(self, here):
        folder = begin(named(TRAIN)[FIRST], steps=3)
        with (folder / "metrics.jsonl").open("a") as file:
            file.write('{"step": 4, "ti')
        assert (status_of(FIRST).step, status_of(FIRST).steps) == (3, 40)

    def test_a_silent_training_has_stopped_unless_its_lock_is_held(self, here):
        folder = begin(named(TRAIN)[FIRST], steps=3)
        later = NOW + 1000
        assert status_of(FIRST, now=NOW + 60).state == "running"
        assert status_of(FIRST, now=later).state == "stopped"
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert status_of(FIRST, now=later).state == "running"
        assert f"{FIRST}  step 3 of 40, stopped" in shown(later)

    def test_a_training_of_this_machine_has_stopped_once_its_lock_is_free(self, here):
        folder = begin(named(TRAIN)[FIRST], steps=3)
        (folder / MACHINE).write_text(platform.node())
        assert status_of(FIRST).state == "stopped"

    def test_without_locks_a_silent_training_has_stopped(self, here, monkeypatch):
        def none(*_):
            raise OSError(errno.ENOLCK, "no locks")

        begin(named(TRAIN)[FIRST], steps=3)
        monkeypatch.setattr(fcntl, "flock", none)
        assert [status_of(FIRST, now=NOW + later).state for later in (60, 1000)] == ["running", "stopped"]

    def test_slow_steps_are_waited_for(self, here):
        begin(named(TRAIN)[FIRST], steps=3, pace=600.0)
        assert status_of(FIRST, now=NOW + 1000).state == "running"

    @pytest.mark.parametrize(
        ("error", "words"),
        [
            ("ValueError: nan", f"step 3 of 40, failed: ValueError: nan (logs/small/train/{FIRST}.log)"),
            ("KeyboardInterrupt: ", "trainings    0 of 4 done, 1 stopped"),
        ],
    )
    def test_a_training_that_failed_says_why_unless_it_was_interrupted(self, here, error, words):
        begin(named(TRAIN)[FIRST], steps=3, status="failed", error=error)
        assert words in shown()

    def test_an_evaluation_has_begun_once_it_has_a_log_until_it_fails_or_ends(self, here):
        end(named(TRAIN)[FIRST], 80.0, NOW - 1)
        job = named("generate")[f"{FIRST}/two-step"]
        write(job.log, "drawing completions with transformers\n")
        assert status_of(job.name, "generate").state == "running"
        write(job.log, "Traceback (most recent call last):\nValueError: no\n", NOW + 1)
        assert status_of(job.name, "generate", NOW + 1).state == "failed"
        end(job, 5.0)
        assert status_of(job.name, "generate").state == "done"
        job.outputs[0].unlink()  # to be drawn again: the log is that of the job before
        os.utime(job.timed, (NOW + 2, NOW + 2))
        assert status_of(job.name, "generate", NOW + 3).state == "waiting"

    def test_what_came_of_a_training_is_not_done_while_that_is_to_be_done_anew_or_was_later(self, here):
        training, drawn, graded = (named(rule) for rule in (TRAIN, "generate", "grade"))
        end(training[FIRST], 80.0, NOW - 20)
        end(drawn[f"{FIRST}/two-step"], 5.0, NOW - 10)
        end(graded[f"{FIRST}/two-step"], 1.0, NOW)
        assert "evaluations  1 of 5 done" in shown()
        end(training[FIRST], 80.0, NOW - 5)
        assert status_of(f"{FIRST}/two-step", "generate").state == "waiting"
        end(training[FIRST], 80.0, NOW + 5)
        assert "evaluations  0 of 5 done" in shown()
        end(training[FIRST], 80.0, NOW - 20)
        drawn[f"{FIRST}/two-step"].outputs[0].unlink()
        assert "evaluations  1 of 5 done" in shown()
        training[FIRST].outputs[0].unlink()
        assert "evaluations  0 of 5 done" in shown()

    def test_a_copy_with_other_times_is_as_far_as_the_study(self, here):
        """As `cp -r` makes it, in whatever order: what a job has read may be newer than what it has written."""
        finished = list(jobs(SMALL))
        for job in finished:
            end(job, 1.0)
        for later, job in enumerate(reversed(finished)):
            for path in (*job.outputs, job.timed):
                os.utime(path, (NOW + later, NOW + later))
        assert {how.state for how in Study(SMALL).read(NOW + 100).values()} == {"done"}

    def test_whatever_runs_is_named_and_counts_as_running(self, here):
        files = StudyFiles("small")
        write(files.log("model", "toy-1.7b"), "")
        write(files.log("plan"), "")
        write(files.results.benchmark("plan"), "")
        for number, line in enumerate(FAILED):
            write(files.log("model", f"failed-{number}"), f"reading\n{line}\n")
        write(files.log("generate", f"{FIRST}/two-step"), "")
        study = Study(SMALL)
        assert list(study.others(NOW + 40)) == ["model toy-1.7b"]
        text = "\n".join(Screen(SMALL).lines())
        assert "other jobs   1 running: model toy-1.7b, since " in text
        write(files.results.benchmark("model", "toy-1.7b"), "")
        assert not study.others(NOW + 41)

    def test_a_study_whose_models_are_made_is_not_idle(self, here):
        write(StudyFiles("small").log("model", "toy-qwen3"), "")
        study = Study(SMALL)
        assert left(study.read(NOW + 40), NOW + 40).at_once == 0
        assert left(study.read(NOW + 40), NOW + 40, [*study.others(NOW + 40).values()]).at_once == 1

    def test_only_what_has_changed_is_read_again(self, here, monkeypatch):
        for job in jobs(SMALL):
            end(job, 1.0)
        study = Study(SMALL)
        first, read = study.read(NOW), []
        monkeypatch.setattr("mcgrpo.commands.progress.state.seconds", read.append)
        assert study.read(NOW + 1) == first and not read
        job = named("grade")[f"{FIRST}/two-step"]
        end(job, 2.0, NOW + 2)
        study.read(NOW + 3)
        assert read == [job.timed]


class TestScreen:
    def test_a_terminal_is_redrawn(self, here, monkeypatch, capsys):
        monkeypatch.setattr("mcgrpo.commands.progress.screen.Console", partial(Console, force_terminal=True))
        screen = Screen(SMALL)
        screen.update()
        screen.update()
        out = capsys.readouterr().out
        assert out.count("0 of 4 done") == 2 and out.count("\033[1A") == len(screen.lines()) - 1

    def test_a_file_gets_a_line_when_something_has_changed(self, here, capsys):
        screen = Screen(SMALL)
        screen.update()
        screen.update()
        assert capsys.readouterr().out.count("\n") == 1
        end(named(TRAIN)[FIRST], 80.0)
        screen.update()
        assert "trainings 1 of 4 done" in capsys.readouterr().out

    def test_an_error_is_printed_once_and_ends_nothing(self, here, capsys, monkeypatch):
        screen = Screen(SMALL)
        monkeypatch.setattr(screen, "lines", lambda: 1 / 0)
        screen.start()
        screen.stop()
        assert capsys.readouterr().err == "progress cannot be shown: ZeroDivisionError: division by zero\n"

    def test_it_is_finished_when_all_is_done_and_the_report_is_made(self, here):
        for job in jobs(SMALL):
            end(job, 1.0)
        screen = Screen(SMALL)
        screen.update()
        assert not screen.finished
        for path in screen.study.report:
            write(path, "")
        screen.update()
        assert screen.finished

    def test_it_is_finished_though_completions_were_deleted(self, here):
        for job in jobs(SMALL):
            end(job, 1.0)
        for job in named("generate").values():
            job.outputs[0].unlink()
        screen = Screen(SMALL)
        for path in screen.study.report:
            write(path, "")
        screen.update()
        assert screen.finished
