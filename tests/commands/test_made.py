"""What is said at the end of `make mini`."""

import subprocess
import sys
from pathlib import Path

import pytest

from mcgrpo.files import write_json

ROOT = Path(__file__).parents[2]
NAMES = [f"toy/grpo/G2/default/seed{seed}" for seed in range(3)]


@pytest.fixture
def told(tmp_path):
    """What is said of a study of three trainings, given the content of its tracking.json."""

    def told(tracking=None, log=""):
        (tmp_path / "logs/mini").mkdir(parents=True)
        (tmp_path / "logs/mini/track.log").write_text(log)
        (tmp_path / "reports/mini").mkdir(parents=True)
        (tmp_path / "reports/mini/headline.md").write_text("The headline.\n")
        evaluations = {name: ["sums"] for name in ["toy/none/G0/default/seed0", *NAMES]}
        write_json(tmp_path / "results/mini/plan.json", {"evaluations": evaluations})
        if tracking is not None:
            write_json(tmp_path / "results/mini/tracking.json", tracking)
        command = [sys.executable, "-m", "mcgrpo.commands.made", "reports/mini"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
        assert done.returncode == 0 and done.stdout.startswith("The headline."), done.stderr
        return done.stdout

    return told


class TestTrainingsThatMLflowLacks:
    @pytest.mark.parametrize(("there", "lacking"), [([], 3), (NAMES[:1], 2)])
    def test_are_counted_with_the_command_that_mends_it(self, told, there, lacking):
        out = told(dict.fromkeys(there, "id"))
        assert f"MLflow lacks {lacking} of 3 trainings: `mcgrpo track {Path('results/mini')}`\n" in out

    def test_are_not_spoken_of_where_there_are_none(self, told):
        assert "lacks" not in told(dict.fromkeys(NAMES, "id"))

    def test_have_their_reasons_from_the_log(self, told):
        out = told(dict.fromkeys(NAMES, "id"), "3 trainings\nwarning: the study was not tracked: Odd: x\nmore\n")
        assert out.endswith("\nwarning: the study was not tracked: Odd: x\n")

    def test_are_not_spoken_of_without_a_record_of_tracking(self, told):
        assert "lacks" not in told()
