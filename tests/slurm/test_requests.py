"""What is asked of SLURM, which need not be there for it."""

import pytest
import yaml
from studies import ROOT, snakemake, three_trainings


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """What Snakemake says of a dry run of a study of three trainings, submitted where there are no GPUs."""
    monkeypatch.setenv("MCGRPO_DEVICES", "")

    def planned(*options, gpus):
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(three_trainings(gpus)))
        places = ["--snakefile", ROOT / "Snakefile", "--directory", tmp_path, "--configfile", tmp_path / "study.yaml"]
        done = snakemake("-n", "--profile", ROOT / "workflow/profiles/slurm", *places, *options)
        return done.stdout + done.stderr

    return planned


def test_a_training_asks_for_its_gpus_on_one_node(planned):
    (resources,) = {line for line in planned(gpus=4).splitlines() if "cpus_per_gpu" in line and "runtime=1440" in line}
    assert {"gpu=4", "nodes=1", "tasks=0"} <= set(resources.split(", "))


def test_fewer_gpus_than_a_training_takes_are_refused(planned):
    said = planned("--resources", "gpu=1", gpus=2)
    (told,) = [line for line in said.splitlines() if "rror" in line]
    assert told == "error: a job of this study needs 2 GPUs, and --resources gpu=1 allows 1"
