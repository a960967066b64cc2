"""GPUs and machines of a study against those that Snakemake may use and those that there are, which are pretended."""

import re

import pytest
from studies import three_trainings

pytestmark = pytest.mark.slow

SERVED = {"use_vllm": True, "vllm_mode": "server"}


@pytest.fixture
def small(empty, monkeypatch):
    """A study of three trainings of one step; what is called on what machine, a test says."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("MCGRPO_LOCKS", str(empty.folder / "locks"))

    def with_gpus(gpus, here, nodes=1, **training):
        monkeypatch.setenv("MCGRPO_DEVICES", here)
        return empty.of(three_trainings(gpus, nodes, **training))

    return with_gpus


class TestFewerThanAJobTakes:
    """Too few GPUs are refused before anything starts, in one line with both numbers."""

    @pytest.mark.parametrize(
        ("gpus", "call", "complaint"),
        [
            (1, ["--resources", "gpu=0"], "a job of this study needs 1 GPU, and --resources gpu=0 allows 0"),
            (2, [], "2 GPUs wanted, this machine has 1"),
        ],
    )
    def test_it_is_refused(self, small, gpus, call, complaint):
        study = small(gpus, here="a")
        done = study.run(*call)
        assert done.returncode == 1
        assert [line for line in done.log.splitlines() if "rror" in line] == [f"error: {complaint}"]
        assert not (study.folder / "resources").exists() and not (study.folder / "results/quick/runs").exists()

    def test_its_vllm_server_is_counted(self, small):
        done = small(1, here="a", **SERVED).run("--resources", "gpu=1")
        assert "error: a job of this study needs 2 GPUs, and --resources gpu=1 allows 1" in done.log
        assert "2 GPUs wanted, this machine has 1" in small(1, here="a", **SERVED).run().log

    def test_and_so_are_several_machines_that_are_not_there(self, small, monkeypatch):
        for name in ("SLURM_JOB_ID", "PET_RDZV_ENDPOINT"):
            monkeypatch.delenv(name, raising=False)
        study = small(2, here="a,b", nodes=2)
        done = study.run()
        (told,) = [line for line in done.log.splitlines() if "rror" in line]
        assert told.startswith("error: nodes=2 machines train together in a SLURM job (workflow/profiles/slurm)")
        assert not (study.folder / "resources").exists()


class TestOtherwise:
    def test_it_is_planned_on_a_machine_without_any(self, small):
        assert small(2, here="").jobs("--resources", "gpu=2")["train"] == 3

    def test_what_needs_no_gpu_runs_there(self, small):
        small(1, here="").made("results/quick/plan.json")


def test_gpus_are_divided_among_trainings(small):
    """Three trainings that could start at once, on two pretended GPUs: each has one, though Snakemake counts none."""
    study = small(1, here="a,b")
    study.made("--cores", "4", *(f"results/quick/runs/toy-qwen3/grpo/G2/default/seed{seed}" for seed in range(3)))
    logs = {path.stem: path.read_text() for path in study.folder.glob("logs/quick/train/**/*.log")}
    assert len(logs) == 3 and all(re.search("takes [ab] ", text) for text in logs.values())
