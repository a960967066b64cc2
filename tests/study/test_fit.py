"""GPUs, machines and vLLM servers that a training does not fit are refused."""

import pytest

from mcgrpo.study.fit import fit, server_gpus

TRAINING = {"prompts_per_step": 40}
SERVER = {"use_vllm": True, "vllm_mode": "server"}


@pytest.mark.parametrize(
    ("gpus", "nodes", "training", "fault"),
    [
        (3, 2, {}, "nodes=2: each machine trains on as many GPUs as the others, but gpus=3"),
        (0, 2, {}, "nodes=2: .* but gpus=0"),
        (0, 1, SERVER, "vllm_mode=server: the server needs GPUs of its own, and so does the training, but gpus=0"),
        (2, 2, SERVER, r"vllm_mode=server on nodes=2: start the server and name it \(vllm_server_base_url\)"),
        (6, 2, {}, r"rows do not divide among 6 process\(es\)"),
    ],
)
def test_machines_and_servers_that_do_not_fit_are_refused(gpus, nodes, training, fault):
    with pytest.raises(ValueError, match=fault):
        fit(TRAINING | training, 2, gpus, nodes)


def test_those_that_fit_are_not():
    fit(TRAINING | SERVER | {"vllm_tensor_parallel_size": 2}, 2, 4)


def test_a_server_that_is_named_is_not_started():
    assert server_gpus(SERVER | {"vllm_server_base_url": "http://there"}) == 0
    assert server_gpus(SERVER) == 1
