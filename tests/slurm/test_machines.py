"""One training on two machines of the real SLURM, each with one of its GPUs."""

import json

from cluster_study import STEPS, submitted
from pretend_cluster import output, until

RUN = "toy-qwen3/mc-grpo/G2/default/seed0"
TARGET = f"results/clustered/runs/{RUN}"


def metrics(study):
    """What a training has logged, without times."""
    rows = map(json.loads, (study.folder / TARGET / "metrics.jsonl").read_text().splitlines())
    return [{key: row[key] for key in row if "time" not in key and "seconds" not in key} for row in rows]


def test_a_training_on_two_machines_is_cancelled_without_a_trace_and_ends_as_one_on_one(finished, cluster, tmp_path):
    study = finished.study.copied(tmp_path / "two", without=RUN)
    study.change(nodes=2)
    with study.started(TARGET, "--retries", "0") as snakemake:
        study.until_training(RUN)
        (job,) = cluster.running("train")
        assert output("squeue", "--noheader", f"--jobs={job}", "--format=%D") == "2"
        agents = [each for each in study.processes() if "--part-of" in each.cmdline()[:8]]
        assert len(agents) == 2
        output("scancel", job)
        said = study.end(snakemake)
    assert f"SLURM-job '{job}' failed, SLURM status is: 'CANCELLED'" in said
    until(lambda: not study.processes(), 120, "processes of a cancelled training are still there")

    (job,) = submitted(study.made(TARGET))
    launches = [launch for launch in cluster.launches() if launch.job == job]
    assert sorted((launch.step, launch.task, launch.gpus) for launch in launches) == [
        ("0", "0", 1),
        ("0", "1", 1),
        ("batch", "0", 1),
    ]
    log = (study.folder / f"logs/clustered/train/{RUN}.log").read_text()
    assert log.count("mcgrpo.launch: takes") == 2 and "going on from" in log
    assert study.steps(RUN) == list(range(1, STEPS + 1)) and metrics(study) == metrics(finished.study)
