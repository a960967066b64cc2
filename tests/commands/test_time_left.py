"""How long a study still takes, from files such as its jobs leave."""

import re
from dataclasses import replace

import pytest
from progress_files import FIRST, NOW, SECOND, SMALL, begin, end, named, rest, shown, write

from mcgrpo.commands.progress.jobs import TRAIN
from mcgrpo.commands.progress.left import Left, left
from mcgrpo.commands.progress.state import Status, Study
from mcgrpo.commands.progress.text import block, duration


class TestTimeLeft:
    def test_it_is_that_of_finished_jobs_of_like_kind_side_by_side_as_before(self, here):
        """Four trainings, two at a time, then one benchmark of five: 4 x (20 + 10) s of work are left."""
        for job in named(TRAIN).values():
            end(job, 50.0, NOW - 30 if "seed0" in job.name else NOW - 80)
        end(named("generate")[f"{FIRST}/two-step"], 20.0, NOW - 10)
        end(named("grade")[f"{FIRST}/two-step"], 10.0, NOW)
        found = rest()
        assert found.at_once == pytest.approx((4 * 50 + 20 + 10) / 130)
        assert (found.jobs, found.unknown) == (4 * 2, 0)
        assert found.seconds == pytest.approx(4 * 30 / found.at_once)

    def test_it_is_no_less_than_the_longest_job_takes(self, here):
        for name in [name for name in named(TRAIN) if name != SECOND]:
            end(named(TRAIN)[name], 50.0)
        for rule in ("generate", "grade"):
            for name, job in named(rule).items():
                end(job, 50.0)
                if SECOND in name:
                    job.outputs[0].unlink()
                    job.timed.unlink()
        assert rest().at_once > 10 and rest().seconds == pytest.approx(50.0)

    def test_it_is_unknown_where_nothing_like_the_rest_is_measured(self, here):
        write(named("generate")[f"{FIRST}/two-step"].log, "drawing\n", NOW - 20)
        assert (rest().seconds, rest().unknown, rest().jobs) == (None, 14, 14)
        assert "time left: unknown" in shown()

    def test_what_is_unlike_anything_measured_is_said_to_be_left_out(self, here):
        end(named(TRAIN)[FIRST], 60.0)
        begin(named(TRAIN)[SECOND], steps=20, pace=3.0)
        assert rest().unknown == rest().jobs - 3  # trainings; no evaluation has ended
        assert "unknown for the others" in shown()

    def test_a_training_unlike_those_measured_takes_as_long_as_it_is_large(self, here):
        """MC-GRPO draws 24 rollouts a step and GRPO 16; a step costs as much as 24 beside them."""
        trainings = named(TRAIN)
        for name in (FIRST, FIRST.replace("seed0", "seed1")):
            end(trainings[name], 80.0)
        begin(trainings[SECOND])
        found = Study(SMALL).read(NOW)
        assert left(found, NOW).seconds * left(found, NOW).at_once == pytest.approx(2 * 80.0 * 48 / 40)

    def test_of_another_kind_is_on_the_line_of_the_others_as_jobs_take_a_while_to_start(self):
        any_job = next(iter(named(TRAIN).values()))
        ten, twenty, forty = (replace(any_job, kind=(TRAIN, str(size)), size=size) for size in (10.0, 20.0, 40.0))
        found = {ten: Status("done", NOW, NOW, 12.0), forty: Status("waiting")}
        assert left(found, NOW).seconds == 48.0, "in proportion, where no line is known"
        found[twenty] = Status("done", NOW - 12, NOW - 12, 14.0)
        assert left(found, NOW).seconds * left(found, NOW).at_once == pytest.approx(10.0 + 40 / 5)

    def test_a_training_that_runs_goes_on_at_its_own_pace(self, here):
        begin(named(TRAIN)[SECOND], steps=30, pace=3.0)
        assert rest().seconds == pytest.approx(10 * 3.0)

    def test_a_pause_of_the_study_does_not_count(self, here):
        trainings = named(TRAIN)
        end(trainings[FIRST], 100.0, NOW - 86_400)
        end(trainings[SECOND], 100.0, NOW)
        assert rest().at_once == pytest.approx(1.0)

    def test_nothing_is_promised_while_nothing_runs_and_what_failed_is_not_waited_for(self, here):
        end(named(TRAIN)[FIRST], 100.0, NOW - 100)
        begin(named(TRAIN)[SECOND], status="failed", error="E: x")
        assert (rest().seconds, rest().jobs) == (None, 12) and "nothing is running" in shown()

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [(20, "less than a minute"), (361, "6 min"), (3660, "1 h 01 min"), (200_000, "55 h 33 min")],
    )
    def test_durations_are_said_to_the_minute(self, seconds, words):
        assert duration(seconds) == words

    def test_an_end_on_another_day_has_its_date(self, here):
        text = block("small", Study(SMALL).read(NOW), "", Left(90_000.0, 0, 1.0, 3), NOW)[-1]
        assert re.search(r"25 h 00 min, done about \w+ \d+ \w+ \d\d:\d\d, then the report$", text)
