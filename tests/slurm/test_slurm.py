"""A study through the real SLURM: what each job gets, how often it is launched, what becomes of one that is stopped."""

from collections import Counter

import pytest
from cluster_study import STEPS, submitted
from pretend_cluster import output, until

RUN = "toy-qwen3/mc-grpo/G2/default/seed0"
TARGET = f"results/clustered/runs/{RUN}"
GPUS = {"warm_start": 1, "train": 2, "generate": 1, "rollouts": 1, "grade": 0, "grade_rollouts": 0}


def test_a_study_goes_through_slurm_to_its_tables(finished):
    reports = finished.study.folder / "reports/clustered"
    assert all((reports / name).stat().st_size for name in ("tables.tex", "tables.md", "claims.csv"))
    assert "MC-GRPO" in (reports / "tables.md").read_text()
    assert finished.study.steps(RUN) == list(range(1, STEPS + 1))


def test_only_what_trains_generates_or_grades_waits_in_the_queue(finished):
    jobs = Counter(name for name, _ in submitted(finished.said).values())
    assert jobs == {"warm_start": 1, "train": 2, "generate": 3, "rollouts": 1, "grade": 3, "grade_rollouts": 1}


def test_each_job_has_the_gpus_that_its_rule_asks_for(finished):
    jobs = submitted(finished.said)
    assert {(jobs[launch.job][0], launch.gpus) for launch in finished.launches} == set(GPUS.items())


def test_each_job_is_launched_once(finished):
    jobs = submitted(finished.said)
    assert {launch.job for launch in finished.launches} == set(jobs)
    assert {launch.task for launch in finished.launches} == {"0"}
    assert set(Counter((launch.job, launch.step) for launch in finished.launches).values()) == {1}
    assert {launch.step for launch in finished.launches} == {"batch", "0"}


def went_on(study):
    """Whether the run's training was finished, from a checkpoint and not from the start."""
    log = study.folder / f"logs/clustered/train/{RUN}.log"
    return "going on from" in log.read_text() and study.steps(RUN) == list(range(1, STEPS + 1))


@pytest.fixture
def training(finished, cluster, tmp_path):
    """A study whose last training runs, Snakemake over it, and SLURM's number of the job."""
    study = finished.study.copied(tmp_path / "study", without=RUN)
    with study.started(TARGET, "--retries", "0") as snakemake:
        study.until_training(RUN)
        (job,) = cluster.running("train")
        yield study, snakemake, job


def test_a_job_cancelled_while_it_trains_is_reported_and_the_next_call_goes_on_with_it(training, cluster):
    study, snakemake, job = training
    output("scancel", job)
    said = study.end(snakemake)
    assert snakemake.returncode != 0 and cluster.ended(job)["JobState"] == "CANCELLED"
    assert f"SLURM-job '{job}' failed, SLURM status is: 'CANCELLED'" in said
    assert "Error in rule train" in said and TARGET in said
    _, log = submitted(said)[job]
    assert "CANCELLED" in log.read_text()
    assert study.left(120) == []
    assert not (study.folder / TARGET).exists()
    assert (study.results / "unfinished" / RUN / "checkpoints").exists()
    study.made(TARGET)
    assert went_on(study)


def test_a_job_that_slurm_puts_back_into_the_queue_is_waited_for(training, cluster):
    study, snakemake, job = training
    output("scontrol", "requeue", job)
    until(lambda: not cluster.running("train"), 120, f"{job} is still running")
    output("scontrol", "update", f"JobId={job}", "StartTime=now")  # SLURM would wait for two minutes
    said = study.end(snakemake)
    assert snakemake.returncode == 0, said
    assert list(submitted(said)) == [job]
    assert Counter(launch.step for launch in cluster.launches() if launch.job == job) == {"batch": 2, "0": 2}
    assert went_on(study)
