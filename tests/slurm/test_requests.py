"""What is asked of SLURM, which need not be there for it."""

import pytest
import yaml
from studies import ROOT, snakemake, three_trainings

SERVED = {"use_vllm": True, "vllm_mode": "server"}


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """What Snakemake says of a dry run of a study of three trainings, submitted where there are no GPUs."""
    monkeypatch.setenv("MCGRPO_DEVICES", "")

    def planned(*options, **study):
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(three_trainings(**study)))
        places = ["--snakefile", ROOT / "Snakefile", "--directory", tmp_path, "--configfile", tmp_path / "study.yaml"]
        done = snakemake("-n", "--profile", ROOT / "workflow/profiles/slurm", *places, *options)
        return done.stdout + done.stderr

    return planned


@pytest.mark.parametrize(
    ("nodes", "training", "asked"),
    [
        (1, {}, "gpu=4, nodes=1, tasks=0, "),
        (1, SERVED | {"vllm_tensor_parallel_size": 2}, "gpu=6, nodes=1, tasks=0, "),
        (2, {}, "gres=gpu:2, nodes=2, tasks=2, tasks_per_gpu=0, mpi=srun, "),
    ],
)
def test_what_a_training_asks_for(planned, nodes, training, asked):
    """SLURM's plugin asks for `gpu` over all machines, for `gres` on each, and leaves the srun of `mpi` to us."""
    said = planned(gpus=4, nodes=nodes, **training)
    (resources,) = {line for line in said.splitlines() if "cpus_per_gpu" in line and "runtime=1440" in line}
    assert asked in resources


def test_fewer_gpus_than_a_training_takes_are_refused(planned):
    said = planned("--resources", "gpu=1", gpus=2)
    (told,) = [line for line in said.splitlines() if "rror" in line]
    assert told == "error: a job of this study needs 2 GPUs, and --resources gpu=1 allows 1"
