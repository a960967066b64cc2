import os
import random
import select
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import numpy as np
import pytest
import torch
from pretend_machine import PATIENCE_SECONDS, line_of
from tiny_training import Ours, same_training, texts_of, trained, trainer_of
from training_jobs import changed

from mcgrpo.launch import ports
from mcgrpo.study.fit import check_vllm as check
from mcgrpo.train import rollout_engine
from mcgrpo.train.arguments import arguments_of
from mcgrpo.train.rollout_engine import take_server, with_installed
from mcgrpo.trainer.seeds import seed_of
from mcgrpo.trainer.vllm import prompt_by_prompt, random_state

COLOCATE = {"use_vllm": True, "vllm_mode": "colocate", "max_completion_length": 8}
CPU = torch.device("cpu")


@pytest.fixture
def installed(monkeypatch):
    """As where vLLM can be imported."""
    monkeypatch.setattr(rollout_engine, "find_spec", lambda name: name)


@pytest.fixture
def server():
    """An address where somebody answers, with the status that the test sets."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(self.server.status if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.status, server.url = 200, f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_without_vllm_transformers_draws_and_the_log_says_so(monkeypatch, capsys):
    monkeypatch.setattr(rollout_engine, "find_spec", lambda name: None)
    assert with_installed(COLOCATE) == {**COLOCATE, "use_vllm": False}
    assert capsys.readouterr().out == "vLLM is not installed: rollouts are drawn with transformers\n"
    monkeypatch.setenv("RANK", "1")
    with_installed(COLOCATE)
    assert capsys.readouterr().out == ""


def test_engines_are_shared_by_a_whole_number_of_processes(installed, monkeypatch):
    shared = {**COLOCATE, "vllm_tensor_parallel_size": 2}
    with pytest.raises(ValueError, match="vllm_tensor_parallel_size=2 does not divide the training's 1 processes"):
        with_installed(shared)
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert with_installed(shared) == shared
    check({**shared, "vllm_mode": "server", "vllm_server_base_url": "http://there"}, 3)


def test_a_server_that_does_not_answer_is_named_before_anything_is_loaded(installed, server, tmp_path):
    server.shutdown(), server.server_close()
    with pytest.raises(ConnectionError, match=rf"vllm_server_base_url={server.url} within 0.3 s: ConnectionError"):
        take_server(served(server, tmp_path))


def test_a_server_is_taken_and_waited_for_until_it_is_well(installed, server, tmp_path, capsys):
    args = served(server, tmp_path)
    assert capsys.readouterr().out == ""  # to build the arguments waits for nothing
    take_server(args)
    assert capsys.readouterr().out == TAKES.format(server.url)
    assert args.vllm_group_port in ports.PORTS  # not that of every other training
    assert args.ddp_timeout > 24 * 3600  # the second process waits as long as the first
    server.status = 503
    with pytest.raises(ConnectionError, match=r"within 0\.3 s: status 503"):
        take_server(args)


def served(server, folder):
    """The arguments of a training whose rollouts a server draws."""
    mode = {"vllm_mode": "server", "vllm_server_base_url": server.url, "vllm_server_timeout": 0.3}
    return arguments_of(changed(**(COLOCATE | mode)), folder, 0)


def test_a_seed_depends_on_its_key_alone():
    seeds = [seed_of(f"0/train/{step}/0/0") for step in range(1000)]
    assert len(set(seeds)) == 1000 and max(seeds) < 2**32 and max(seeds) > 2**31
    assert seed_of("0/train/7/0/0") == seeds[7]
    assert max(seed_of(str(place), bits=62) for place in range(1000)).bit_length() == 62


def draw():
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_a_seed_fixes_all_generators_and_leaves_no_trace():
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = draw()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    with random_state(CPU, 5):
        inside = draw()
    assert draw() == expected
    with random_state(CPU, 5):
        assert draw() == inside
    with random_state(CPU, 6):
        assert all(other != one for other, one in zip(draw(), inside, strict=True))
    with pytest.raises(KeyError), random_state(CPU, 5):
        raise KeyError
    state = torch.get_rng_state()
    with random_state(CPU):
        draw()
    assert torch.equal(torch.get_rng_state(), state)


def echo(prompts, generation_kwargs, n):
    """Answers as TRL's client does: lists over prompts, and over prompts x n."""
    seeds = [[generation_kwargs.get("seed")] for _ in prompts for _ in range(n)]
    return {"prompt_ids": list(prompts), "completion_ids": seeds, "logprobs": None, "requests": [len(prompts)]}


def test_a_server_gets_every_prompt_with_a_seed_of_its_own():
    prompts = [[1], [1], [2]]
    drawn = prompt_by_prompt(echo, "a", prompts, {"stop": "x"}, n=2)
    assert drawn["prompt_ids"] == prompts and drawn["logprobs"] is None and drawn["requests"] == [1, 1, 1]
    one, one_too, two, _, three, _ = (seed for (seed,) in drawn["completion_ids"])
    assert one == one_too and len({one, two, three}) == 3
    assert drawn == prompt_by_prompt(echo, "a", prompts, {}, n=2)
    assert drawn["completion_ids"] != prompt_by_prompt(echo, "b", prompts, {}, n=2)["completion_ids"]


def with_dropout(tmp_path, seed):
    """A training of a model with dropout in its attention."""
    trainer = trainer_of(Ours, tmp_path, seed=seed)
    for layer in trainer.model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    trainer.train()
    return trainer


@pytest.mark.slow
def test_the_same_seed_drops_the_same(tmp_path):
    first = with_dropout(tmp_path, 3)
    torch.manual_seed(99)
    assert same_training(first, with_dropout(tmp_path, 3))
    assert not same_training(first, trained(Ours, tmp_path))


@pytest.mark.slow
def test_another_seed_draws_other_rollouts_of_the_same_prompts(tmp_path):
    one, other = (trained(Ours, tmp_path, seed=seed, shuffle_dataset=False, max_steps=1) for seed in (3, 4))
    columns = ("prompt_ids", "completion_ids")
    prompts, completions = ([sorted(texts_of(t, t.batches[0], name)) for t in (one, other)] for name in columns)
    assert prompts[0] == prompts[1]
    assert completions[0] != completions[1]


HOLDER = """
import sys
from mcgrpo.train.arguments import arguments_of
from mcgrpo.train.rollout_engine import hold
hold(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


TAKES = "takes the vLLM server at {}, once no other training uses it\n"


def test_a_server_is_kept_to_one_training_until_that_ends():
    """The other waits; a server elsewhere is another one."""
    one, two = (f"http://{name}-{os.getpid()}" for name in ("one", "two"))  # locks are for all of a machine

    def start(url):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, "-c", HOLDER, url], **pipes)

    first = start(one)
    assert [line_of(first) for _ in range(2)] == [TAKES.format(one), "held\n"]
    second, elsewhere = start(one), start(two)
    assert [line_of(elsewhere) for _ in range(2)] == [TAKES.format(two), "held\n"]
    assert line_of(second) == TAKES.format(one)
    assert select.select([second.stdout], [], [], 0.5)[0] == []
    first.kill()
    assert line_of(second) == "held\n"
    for process in (first, second, elsewhere):
        process.communicate(timeout=PATIENCE_SECONDS)
