"""The pretend cluster, and a study that has gone through it."""

from dataclasses import dataclass

import pretend_cluster
import pytest
from cluster_study import Study, write_study


@dataclass
class Finished:
    """A study, what Snakemake said while it ran, and what SLURM launched."""

    study: Study
    said: str
    launches: list[pretend_cluster.Launch]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    if reason := pretend_cluster.missing():
        pytest.exit(reason, returncode=1)  # nobody comes here who does not mean to
    with pretend_cluster.cluster(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture(scope="session")
def finished(cluster, tmp_path_factory) -> Finished:
    folder = tmp_path_factory.mktemp("study")
    write_study(folder / "study.yaml")
    study, earlier = Study(folder), len(cluster.launches())
    said = study.made()
    return Finished(study, said, cluster.launches()[earlier:])
