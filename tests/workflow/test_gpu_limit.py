"""GPUs and machines of a study against those that Snakemake may use and those that there are, which are pretended."""

import re

import pytest
from studies import three_trainings

pytestmark = pytest.mark.slow

SERVED = {"use_vllm": True, "vllm_mode": "server"}


@pytest.fixture
def small(empty, monkeypatch):
    """A study of three trainings of one step; what is called on what machine, a test says."""
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "PET_RDZV_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MCGRPO_LOCKS", str(empty.folder / "locks"))

    def with_gpus(gpus, here, nodes=1, **training):
        monkeypatch.setenv("MCGRPO_DEVICES", here)
        return empty.of(three_trainings(gpus, nodes, **training))

    return with_gpus


@pytest.mark.parametrize(
    ("study", "call", "complaint"),
    [
        ({"gpus": 1}, ["--resources", "gpu=0"], "a job of this study needs 1 GPU, and --resources gpu=0 allows 0"),
        ({"gpus": 2}, [], "2 GPUs wanted, this machine has 1"),
        (SERVED, ["--resources", "gpu=1"], "a job of this study needs 2 GPUs, and --resources gpu=1 allows 1"),
        (SERVED, [], "2 GPUs wanted, this machine has 1"),
        ({"gpus": 2, "nodes": 2, "here": "a,b"}, [], "nodes=2 machines train together in a SLURM job"),
    ],
)
def test_fewer_gpus_than_a_job_takes_are_refused_before_anything_starts(small, study, call, complaint):
    """In one line with both numbers, those of its vLLM server counted; and so are machines that are not there."""
    study = small(**{"gpus": 1, "here": "a"} | study)
    done = study.run(*call)
    assert done.returncode == 1
    (told,) = [line for line in done.log.splitlines() if "rror" in line]
    assert told.startswith(f"error: {complaint}")
    assert not (study.folder / "resources").exists() and not (study.folder / "results/quick/runs").exists()


def test_it_is_planned_on_a_machine_without_any(small):
    assert small(2, here="").jobs("--resources", "gpu=2")["train"] == 3


def test_what_needs_no_gpu_runs_there(small):
    small(1, here="").made("results/quick/plan.json")


def test_gpus_are_divided_among_trainings(small):
    """Three trainings that could start at once, on two pretended GPUs: each has one, though Snakemake counts none."""
    study = small(1, here="a,b")
    study.made("--cores", "4", *(f"results/quick/runs/toy-qwen3/grpo/G2/default/seed{seed}" for seed in range(3)))
    logs = {path.stem: path.read_text() for path in study.folder.glob("logs/quick/train/**/*.log")}
    assert len(logs) == 3 and all(re.search("takes [ab] ", text) for text in logs.values())
