"""Rollouts of a real vLLM server, started as config/README.md says; and what a training with one lacks on a CPU."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from tiny_training import model_folder
from training_jobs import changed, make_inputs, outcome
from trl.generation.vllm_client import VLLMClient

from mcgrpo.train.rollout_engine import take_server
from mcgrpo.trainer.vllm import prompt_by_prompt

PROMPTS = [[5, 6, 7], [5, 6, 7], [8, 9]]
# Not `vllm serve`, which asks for the metadata of a package of that name: vLLM's CPU build has another.
SERVER = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--max-model-len", "64"]
SERVER += ["--weight-transfer-config", '{"backend": "nccl"}', "--logprobs-mode=processed_logprobs", "--max-logprobs=-1"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Settings of a training that names a server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*SERVER, "--model", str(model_folder()), "--port", str(port)]
    environment = os.environ | {"VLLM_SERVER_DEV_MODE": "1"}
    with (tmp_path_factory.mktemp("server") / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    yield {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": url, "vllm_server_timeout": 900}
    server.terminate()  # killed, it would leave hundreds of megabytes of shared memory
    with suppress(subprocess.TimeoutExpired):
        server.wait(60)
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait(60)


@pytest.fixture
def locks(tmp_path, monkeypatch):
    monkeypatch.setenv("MCGRPO_LOCKS", str(tmp_path / "locks"))


def test_rollouts_depend_on_the_seed_and_each_prompt_has_a_noise_of_its_own(served, locks):
    take_server(SimpleNamespace(**served))
    client = VLLMClient(base_url=served["vllm_server_base_url"], connection_timeout=500)

    def drawn(key):
        """Three completions of each prompt."""
        answer = prompt_by_prompt(client.generate, key, PROMPTS, {}, n=3, max_tokens=8)
        assert answer["prompt_ids"] == PROMPTS and len(answer["logprobs"]) == 9
        return answer["completion_ids"]

    first, again, other = map(drawn, ("0/train/0/0/0", "0/train/0/0/0", "1/train/0/0/0"))
    assert again == first != other
    assert len(first) == 9 and first[:3] != first[3:6] and len({tuple(ids) for ids in first[:3]}) > 1
    assert client.get_world_size() == 1 and client.get_server_info()["weight_transfer_config"]["backend"] == "nccl"


def test_a_training_meets_its_server_and_says_that_weights_need_a_gpu(served, locks, tmp_path):
    """As far as a CPU goes: TRL sends the weights by NCCL. No model is left."""
    inputs, run = make_inputs(tmp_path), changed(**served)
    options = {"run": json.dumps(asdict(run)), "model": inputs / "model", "data": inputs / "data.jsonl"}
    options |= {name: tmp_path / name for name in ("output", "weights", "unfinished")}
    command = [sys.executable, "-m", "mcgrpo.train", *(f"--{name}={value}" for name, value in options.items())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 1 and not (tmp_path / "weights").exists(), done.stderr[-3000:]
    assert f"takes the vLLM server at {served['vllm_server_base_url']}" in done.stdout
    assert "Weight synchronization runs on vLLM's NCCL" in outcome(tmp_path / "unfinished")["error"]
