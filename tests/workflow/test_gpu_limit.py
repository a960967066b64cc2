"""GPUs of a study against those that Snakemake may use and those that there are, which are pretended."""

import pytest
from studies import three_trainings

from mcgrpo import shipped
from mcgrpo.study.read import read

PAPER = read([shipped.STUDY])

pytestmark = pytest.mark.slow


@pytest.fixture
def small(empty, monkeypatch):
    """A study of three trainings of one step; what is called on what machine, a test says."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("MCGRPO_LOCKS", str(empty.folder / "locks"))

    def with_gpus(gpus, here):
        monkeypatch.setenv("MCGRPO_DEVICES", here)
        return empty.of(three_trainings(gpus))

    return with_gpus


@pytest.mark.parametrize(
    ("gpus", "call", "complaint"),
    [
        (1, ["--resources", "gpu=0"], "a job of this study needs 1 GPU, and --resources gpu=0 allows 0"),
        (2, [], "2 GPUs wanted, this machine has 1"),
    ],
)
def test_fewer_gpus_than_a_job_takes_are_refused_before_anything_starts(small, gpus, call, complaint):
    """In one line with both numbers."""
    study = small(gpus, here="a")
    done = study.run(*call)
    assert done.returncode == 1
    (told,) = [line for line in done.log.splitlines() if "rror" in line]
    assert told.startswith(f"error: {complaint}")
    assert not (study.folder / "resources").exists() and not (study.folder / "results/quick/runs").exists()


def test_cards_that_are_too_small_are_told_when_a_study_starts(small, empty, monkeypatch):
    small(1, here="a")
    monkeypatch.setenv("MCGRPO_DEVICE_GIB", "8")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # so that it ends where its model should be downloaded
    config = three_trainings(1)
    config["models"]["toy-qwen3"] = PAPER["models"]["qwen3-1.7b"] | {"hub": "no/such"}
    done = empty.of(config).run()
    assert done.returncode == 1
    (told,) = [line for line in done.log.splitlines() if line.startswith("warning: ")]
    assert "of 8.0 GiB on each GPU" in told


def test_it_is_planned_on_a_machine_without_any(small):
    assert small(2, here="").jobs("--resources", "gpu=2")["train"] == 3


def test_what_needs_no_gpu_runs_there(small):
    small(1, here="").made("results/quick/plan.json")
