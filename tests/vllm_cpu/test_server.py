"""Seeds with a real vLLM server, and TRL's client. Weights are sent to a server by NCCL, which needs GPUs."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_training import model_folder
from trl.generation.vllm_client import VLLMClient

from mcgrpo.rollouts import wait_for_server
from mcgrpo.vllm_rollouts import prompt_by_prompt

PROMPTS = [[5, 6, 7], [5, 6, 7], [8, 9]]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """TRL's client of a server with the tiny model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    vllm = [Path(sys.executable).with_name("vllm"), "serve", model_folder()]
    options = ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "64", "--enforce-eager"]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as file:
        server = subprocess.Popen([*vllm, *options], stdout=file, stderr=file)
    try:
        wait_for_server(f"http://127.0.0.1:{port}", 300)
        yield VLLMClient(base_url=f"http://127.0.0.1:{port}")
    except ConnectionError:
        pytest.fail(log.read_text()[-3000:])
    finally:
        server.terminate()
        server.wait(60)


def drawn(client, key):
    answer = prompt_by_prompt(client.generate, PROMPTS, {"key": key}, n=3, max_tokens=8)
    assert answer["prompt_ids"] == PROMPTS
    assert len(answer["completion_ids"]) == len(answer["logprobs"]) == 9
    return answer["completion_ids"]


def test_a_server_draws_by_the_seed(client):
    first = drawn(client, "0/train/0/0/0")
    assert drawn(client, "0/train/0/0/0") == first
    assert drawn(client, "1/train/0/0/0") != first


def test_prompts_of_a_batch_do_not_share_their_noise(client):
    first = drawn(client, "0/train/1/0/0")
    assert first[:3] != first[3:6]
    assert len({tuple(ids) for ids in first[:3]}) > 1
