"""Seeds with a real vLLM server, and TRL's client. Weights are sent to a server by NCCL, which needs GPUs."""

import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest
import requests
from tiny_training import model_folder
from trl.generation.vllm_client import VLLMClient

from mcgrpo.trainer.vllm import prompt_by_prompt

PROMPTS = [[5, 6, 7], [5, 6, 7], [8, 9]]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """TRL's client of a server with the tiny model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Not `vllm serve`, which asks for the metadata of a package of that name; it calls this.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model_folder())]
    options = ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "64"]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as file:
        server = subprocess.Popen([*command, *options], stdout=file, stderr=file)
    try:
        wait_for(server, f"http://127.0.0.1:{port}", log)
        yield VLLMClient(base_url=f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        server.wait(300)


def wait_for(server, url, log):
    """Until it answers, or has ended."""
    for _ in range(240):
        assert server.poll() is None, log.read_text()[-3000:]
        with suppress(requests.RequestException):
            return requests.get(f"{url}/health", timeout=5).raise_for_status()
        time.sleep(5)
    pytest.fail(log.read_text()[-3000:])


def drawn(client, key):
    answer = prompt_by_prompt(client.generate, PROMPTS, {"key": key}, n=3, max_tokens=8)
    assert answer["prompt_ids"] == PROMPTS
    assert len(answer["completion_ids"]) == len(answer["logprobs"]) == 9
    return answer["completion_ids"]


def test_a_server_draws_by_the_seed_and_with_a_noise_of_its_own_for_each_prompt(client):
    first = drawn(client, "0/train/0/0/0")
    assert drawn(client, "0/train/0/0/0") == first
    assert drawn(client, "1/train/0/0/0") != first
    assert first[:3] != first[3:6]
    assert len({tuple(ids) for ids in first[:3]}) > 1
