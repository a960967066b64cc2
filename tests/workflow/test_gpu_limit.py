"""GPUs and machines of a study against those that Snakemake may use and those that there are, which are pretended."""

import json
import os
import re

import pytest
import yaml
from studies import three_trainings

from mcgrpo.launch import gpu_limit
from mcgrpo.launch.devices import DeviceError

pytestmark = pytest.mark.slow

SERVED = {"use_vllm": True, "vllm_mode": "server"}


@pytest.fixture
def small(empty, monkeypatch):
    """A study of three trainings of one step; what is called on what machine, a test says."""
    for name in ("CUDA_VISIBLE_DEVICES", "MCGRPO_HOLDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MCGRPO_LOCKS", str(empty.folder / "locks"))

    def with_gpus(gpus, here, nodes=1, **training):
        monkeypatch.setenv("MCGRPO_DEVICES", here)
        (empty.folder / "study.yaml").write_text(yaml.safe_dump(three_trainings(gpus, nodes, **training)))
        empty.configfiles = ["--configfile", str(empty.folder / "study.yaml")]
        return empty

    return with_gpus


class TestFewerThanAJobTakes:
    """Too few GPUs are refused before anything starts, in one line with both numbers."""

    @pytest.mark.parametrize(
        ("gpus", "call", "complaint"),
        [
            (1, ["--resources", "gpu=0"], "a training (gpus: 1) takes 1 GPU, and --resources gpu=0 allows 0"),
            (1, ["--resources=gpu=0", "-n"], "a training (gpus: 1) takes 1 GPU, and --resources gpu=0 allows 0"),
            (2, [], "2 GPUs wanted, this machine has 1: a (pretend device, a)"),
            (2, ["--resources", "gpu=2"], "2 GPUs wanted, this machine has 1: a (pretend device, a)"),
        ],
    )
    def test_it_is_refused(self, small, gpus, call, complaint):
        study = small(gpus, here="a")
        done = study.run(*call)
        assert done.returncode == 1
        assert [line for line in done.log.splitlines() if "rror" in line] == [f"error: {complaint}"]
        assert not (study.folder / "resources").exists() and not (study.folder / "results/quick/runs").exists()

    @pytest.mark.skipif(os.getuid() != 0, reason="giving a folder to another user needs root")
    def test_and_where_another_user_has_the_locks(self, small):
        study = small(1, here="a")
        (locks := study.folder / "locks").mkdir(mode=0o1777)
        os.chown(locks, 65534, 65534)
        done = study.run()
        assert done.returncode == 1
        (told,) = [line for line in done.log.splitlines() if "rror" in line]
        assert told.startswith(f"error: {locks} belongs to user 65534")
        assert not (study.folder / "resources").exists()

    def test_an_evaluation_is_refused_alike(self):
        with pytest.raises(
            DeviceError, match=r"an evaluation \(vllm_tensor_parallel_size: 2\) takes 2 .*gpu=1 allows 1"
        ):
            gpu_limit.limit(1, 0, 2, 1, on_cluster=True)

    def test_its_vllm_server_is_counted(self, small):
        done = small(1, here="a", **SERVED).run("--resources", "gpu=1")
        assert "error: a training (gpus: 1, with a vLLM server on 1) takes 2 GPUs, and --res" in done.log
        assert "2 GPUs wanted, this machine has 1: a" in small(1, here="a", **SERVED).run().log

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

    @pytest.mark.parametrize(
        ("training", "given", "on_cluster", "limited"),
        [(1, None, False, 2), (2, None, False, 2), (3, None, False, None), (0, None, False, None),
         (1, None, True, None), (1, 1, False, 1), (1, 8, True, 8), (0, 0, False, 0)],
    )  # fmt: skip
    def test_how_many_snakemake_may_use_of_two(self, monkeypatch, training, given, on_cluster, limited):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setenv("MCGRPO_DEVICES", "a,b")
        assert gpu_limit.limit(training, 0, min(training, 1), given, on_cluster=on_cluster) == limited


def test_without_resources_trainings_are_as_many_as_gpus(small):
    """Three trainings that could start at once, on two pretend devices: the third does not even wait for one."""
    study = small(1, here="a,b")
    study.made("--cores", "4", *(f"results/quick/runs/toy-qwen3/grpo/G2/default/seed{seed}" for seed in range(3)))
    logs = {path.stem: path.read_text() for path in study.folder.glob("logs/quick/train/**/*.log")}
    assert len(logs) == 3 and all(re.search("takes [ab] ", text) for text in logs.values())
    records = {path.parent.name: json.loads(path.read_text()) for path in study.folder.glob("results/**/run.json")}
    last = max(records, key=lambda name: records[name]["outcome"]["started"])
    assert "waits for" not in logs[last]
