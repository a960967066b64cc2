"""The memory of a training on each GPU, worked out by hand."""

from dataclasses import replace

import runs

from mcgrpo.commands.forecast.batches import batches
from mcgrpo.commands.forecast.memory import memory
from mcgrpo.commands.forecast.sizes import Model


def memory_of(gpus=2, **training):
    run = replace(runs.RUN, training={"per_device_train_batch_size": 4, "max_completion_length": 100, **training})
    return memory(run.training, Model(1000, 10, 3, 50), batches(run, gpus, None))


def test_memory_by_hand():
    assert memory_of(gpus=1).state == 16 * 1000
    assert memory_of().state == 20 * 1000  # DDP's buckets
    assert memory_of(gpus=1, beta=0.04).state == 20 * 1000
    assert memory_of(sharding="fsdp", beta=0.04).state == memory_of(sharding="zero3", beta=0.04).state == 20 * 1000 / 2
    assert memory_of(lora={"r": 1}, beta=0.04).state == 4 * 1000
    assert memory_of(lora={"r": 1}, sharding="fsdp").state == 4 * 1000 / 2
    tokens = 4 * 612
    inputs, tile, head = 4 * tokens * 10 * 3, 4 * tokens * 50, 4 * 10 * (tokens + 50)
    assert memory_of().activations == 16 * inputs + tile + head
    assert memory_of(bf16=True, gradient_checkpointing=True).activations == (inputs + tile) / 2 + head
    assert memory_of(lora={"r": 1}).activations == 16 * inputs + tile + 4 * 10 * tokens
    shared = memory_of(use_vllm=True, vllm_mode="colocate", vllm_gpu_memory_utilization=0.5)
    assert shared.device == 2 * (shared.state + shared.activations)
    assert memory_of(use_vllm=True, vllm_mode="server").vllm_share == memory_of().vllm_share == 0


def test_the_logits_are_held_whole_before_trl_1_14(monkeypatch):
    monkeypatch.setattr("mcgrpo.commands.forecast.memory.version", {"trl": "1.13.0"}.get)
    assert memory_of().activations == 3 * 4 * 4 * 100 * 50 + 16 * 4 * 4 * 612 * 10 * 3


def test_the_logits_of_a_large_vocabulary_are_held_in_tiles():
    run = replace(runs.RUN, training={"per_device_train_batch_size": 16, "max_completion_length": 3072, "bf16": True})
    large, small = (Model(1000, 1, 1, vocabulary) for vocabulary in (152_000, 32_768))
    activations = [memory(run.training, model, batches(run, 1, None)).activations for model in (large, small)]
    assert activations[0] - activations[1] == 4 * (152_000 - 32_768)  # the gradient of the head alone
