"""One training on two machines of the real SLURM, each with one of its GPUs; and a server on a third."""

import json
import os
import shlex
import sys

import psutil
import pytest
from cluster_study import STEPS, Study, submitted, write_study
from pretend_cluster import output, until
from studies import ROOT

RUN = "toy-qwen3/mc-grpo/G2/default/seed0"
TARGET = f"results/clustered/runs/{RUN}"


def metrics(study):
    """What a training has logged, without times."""
    rows = map(json.loads, (study.folder / TARGET / "metrics.jsonl").read_text().splitlines())
    return [{key: row[key] for key in row if "time" not in key and "seconds" not in key} for row in rows]


@pytest.fixture
def one_machine(cluster, tmp_path):
    """The training on two GPUs of one machine."""
    folder = tmp_path / "one"
    folder.mkdir()
    write_study(folder / "study.yaml")
    study = Study(folder)
    study.made(TARGET)
    return study


def test_a_training_on_two_machines_is_cancelled_without_a_trace_and_ends_as_one_on_one(one_machine, cluster, tmp_path):
    study = one_machine.copied(tmp_path / "two", without=RUN)
    study.change(nodes=2)
    snakemake = study.start(TARGET, "--retries", "0")
    try:
        study.until_training(RUN)
        (job,) = cluster.running("train")
        assert output("squeue", "--noheader", f"--jobs={job}", "--format=%D") == "2"
        agents = [each for each in study.processes() if "--part-of" in each.cmdline()[:8]]
        assert len(agents) == 2
        output("scancel", job)
        said = study.end(snakemake)
    finally:
        snakemake.kill()
        snakemake.wait()
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
    assert study.steps(RUN) == list(range(1, STEPS + 1)) and metrics(study) == metrics(one_machine)


STAND_IN = """
import http.server, os, sys
port = int(sys.argv[sys.argv.index("--port") + 1])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["SLURMD_NODENAME"].encode())
http.server.HTTPServer(("0.0.0.0", port), Handler).serve_forever()
"""
MEET = """
import json, os, sys, time, urllib.request
import torch.distributed as distributed
distributed.init_process_group("gloo")
found = [None] * distributed.get_world_size()
distributed.all_gather_object(found, os.environ["SLURMD_NODENAME"])
while distributed.get_rank() == 0:
    try:
        answer = urllib.request.urlopen(os.environ["MCGRPO_VLLM_SERVER"], timeout=5).read().decode()
        open(sys.argv[1], "w").write(json.dumps({"training": found, "server": answer}))
        break
    except OSError:
        time.sleep(0.2)
distributed.barrier()
if sys.argv[2] == "scancel":
    time.sleep(600)
distributed.destroy_process_group()  # else its threads may abort a process that ends
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize(("end", "state"), [("0", "COMPLETED"), ("1", "FAILED"), ("scancel", "CANCELLED")])
def test_a_server_has_a_machine_of_its_own_and_ends_with_the_training(cluster, tmp_path, end, state):
    """The server is a stand-in, the training two processes that meet: a real one needs GPUs for its weights."""
    package = tmp_path / "path/vllm/entrypoints/openai"
    package.mkdir(parents=True)
    (package / "api_server.py").write_text(STAND_IN)
    (tmp_path / "path/meet.py").write_text(MEET)
    server = json.dumps({"model": "some/model", "log": "vllm.log", "gpus": 1})
    launch = [sys.executable, "-m", "mcgrpo.launch", "--gpus", "2", "--processes", "2", "--nodes", "3"]
    job = shlex.join([*launch, "--server", server, "meet", str(tmp_path / "found.json"), end])
    own = {"MCGRPO_DEVICES": "pretend0,pretend1", "PYTHONPATH": f"{ROOT}:{tmp_path / 'path'}"}
    exports = " ".join(f"{name}={value}" for name, value in own.items())
    (tmp_path / "job.sh").write_text(f"#!/bin/sh\nexport {exports}\n{job}\n")
    asks = ["--nodes=3", "--ntasks=3", "--gres=gpu:1", "--cpus-per-gpu=4", "--mem=4000"]
    number = output("sbatch", "--parsable", *asks, f"--chdir={tmp_path}", "--output=log", str(tmp_path / "job.sh"))
    until(lambda: (tmp_path / "found.json").exists(), 300, f"they do not meet, see {tmp_path / 'log'}")
    assert any("some/model" in each.info["cmdline"] for each in listed())
    if end == "scancel":
        output("scancel", number)
    until(lambda: not output("squeue", "--noheader", f"--jobs={number}"), 300, "the job does not end")
    assert cluster.ended(number)["JobState"] == state, (tmp_path / "log").read_text()
    found = json.loads((tmp_path / "found.json").read_text())
    assert sorted(found["training"]) == ["pretend2", "pretend3"] and found["server"] == "pretend1"
    until(lambda: not any("some/model" in each.info["cmdline"] for each in listed()), 60, "the server is still there")


def listed():
    return [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] and each.pid != os.getpid()]
