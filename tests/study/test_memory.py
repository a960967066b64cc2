"""The memory of a training: parameters as transformers counts them, bytes against what was measured on two cards."""

from dataclasses import replace

import pytest
import runs
import torch
from memory_of import QWEN3_1_7B, SHAPE, of
from peft import LoraConfig, get_peft_model
from studies import ROOT
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.masking_utils import sdpa_mask

from mcgrpo.study import memory as of_memory
from mcgrpo.study.memory import (
    GIB,
    OF_PROCESS,
    OUTSIDE,
    adapter_parameters,
    disk,
    is_known,
    parameters,
    vocabulary,
)
from mcgrpo.study.model_config import model_config
from mcgrpo.study.read import read


def on_meta(shape):
    """transformers' model of a config.json, without its weights."""
    known = {key: value for key, value in shape.items() if key != "model_type"}
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(shape["model_type"], **known))


VARIANTS = [
    {"model_type": "qwen2"},
    {"model_type": "qwen2", "tie_word_embeddings": False},
    {"model_type": "qwen3"},
    {"model_type": "qwen3", "head_dim": 32, "attention_bias": True},
    {"model_type": "llama"},
    {"model_type": "llama", "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_parameters_are_those_that_transformers_counts(variant):
    assert parameters(SHAPE | variant) == on_meta(SHAPE | variant).num_parameters()


@pytest.mark.parametrize("modules", [None, "all-linear", ["q_proj", "down_proj"]], ids=str)
def test_adapters_are_those_that_peft_counts(modules):
    shape, lora = SHAPE | {"model_type": "qwen2"}, {"r": 4} | ({"target_modules": modules} if modules else {})
    model = get_peft_model(on_meta(shape), LoraConfig(task_type="CAUSAL_LM", **lora))
    assert adapter_parameters(shape, lora) == model.get_nb_trainable_parameters()[0]


PRINTED = {
    "qwen3-1.7b": 1.72e9,
    "llama-3.2-3b": 3.21e9,
    "qwen2.5-math-1.5b": 1.54e9,
    "qwen3-4b": 4.02e9,
    "qwen2.5-7b": 7.62e9,
}
"""Weights as the models' pages give them."""


@pytest.mark.parametrize(("name", "count"), PRINTED.items())
def test_the_models_of_the_paper_have_their_size(name, count):
    assert parameters(model_config(read([ROOT / "config/config.yaml"]), name)) == pytest.approx(count, rel=0.005)


@pytest.fixture
def prompts(monkeypatch):
    """Of the benchmark's GSM8K template in bytes: 534 to 539 tokens."""
    monkeypatch.setattr(of_memory, "PROMPT_TOKENS", 537)


TOLERANCE = 0.025
"""Of what torch had allocated at most. On the card it had reserved more, which depends on the order of allocations."""


@pytest.mark.parametrize(
    ("rows", "beta", "measured"),
    [(32, 0.0, 28.8), (24, 0.0, 28.0), (32, 0.04, 35.3)],
    ids=["TRL", "without the quarter of rows whose rewards are equal", "with a reference model"],
)
def test_an_h100_without_vllm(prompts, rows, beta, measured):
    """Qwen3-1.7B's shape, 128 tokens, docs/gpu.md; transformers draws the rollouts."""
    found = of(rows, 128, beta=beta)
    assert (found.held - OUTSIDE + found.working) / GIB == pytest.approx(measured, rel=TOLERANCE)


LEFT = 12 * parameters(QWEN3_1_7B) / GIB
"""Weights and moments of the training before, which the benchmark's shared engine kept alive: all but the first row."""
H200, SHARE = 139.8, 0.35


@pytest.mark.parametrize(
    ("rows", "measured"),
    [(4, 75.3), (16, 95.9 - LEFT), (32, 100.0 - LEFT), (64, 111.9 - LEFT)],
    ids=["median at G=2", "TRL at G=2, median at G=8", "TRL at G=4, mean at G=8", "TRL at G=8"],
)
def test_an_h200_with_vllm(prompts, rows, measured):
    """The same shape, 8 prompts, 512 tokens: TRL computes all rows, compact updates those with an advantage.

    Within vLLM's share is what torch does not count, about 1.6 GiB: CUDA's context and graphs.
    """
    found = of(rows, 512, use_vllm=True, vllm_gpu_memory_utilization=SHARE)
    assert found.total(H200 * GIB) / GIB - 1 == pytest.approx(measured, rel=TOLERANCE)


def test_each_row_more_costs_what_was_measured(prompts):
    """From 32 to 64 rows 11.9 GiB; without vLLM's share and what is constant."""
    more = (of(64, 512, use_vllm=True).working - of(32, 512, use_vllm=True).working) / GIB
    assert more == pytest.approx(111.9 - 100.0, rel=0.05)


def test_a_weight_takes_sixteen_bytes_and_a_reference_four():
    found, count = of(8, 64, beta=0.04), parameters(QWEN3_1_7B)
    assert (found.weights, found.optimizer, found.reference) == (4 * count, 8 * count, 4 * count)
    assert found.working >= 4 * count


def test_sharding_divides_what_is_kept_between_steps():
    whole, half = (of(8, 64, 2, beta=0.04, **{"sharding": each}) for each in ("none", "fsdp"))
    for name in ("weights", "optimizer", "reference"):
        assert getattr(half, name) == getattr(whole, name) / 2
    assert half.working < whole.working and of(8, 64, 1).working < whole.working  # without DDP's buckets


def test_adapters_have_no_reference_and_gradients_of_their_own_alone():
    found, count = of(8, 64, beta=0.04, lora={"r": 16}), parameters(QWEN3_1_7B)
    assert found.reference == 0 and found.optimizer < 0.02 * count and 4 * count < found.weights < 4.1 * count


def test_activations_without_checkpointing_are_those_of_every_layer():
    assert of(64, 512, gradient_checkpointing=False).working > 4 * of(64, 512).working


def test_gradients_are_kept_while_others_are_accumulated():
    more = of(64, 512, use_vllm=True, gradient_accumulation_steps=2).working - of(64, 512, use_vllm=True).working
    assert more == 4 * parameters(QWEN3_1_7B)


def test_the_smallest_card_is_full():
    for training in ({"use_vllm": True}, {"use_vllm": True, "vllm_enable_sleep_mode": True}, {}):
        found = of(32, 512, **training)
        assert found.total(found.smallest_card) == pytest.approx(found.smallest_card)


def test_an_engine_that_sleeps_leaves_its_share_to_the_update():
    asleep, awake = (of(64, 512, use_vllm=True, vllm_enable_sleep_mode=each) for each in (True, False))
    assert asleep.total(80 * GIB) < awake.total(80 * GIB) - 20 * GIB


def test_the_share_of_an_engine_holds_its_weights():
    found = of(1, 64, use_vllm=True, vllm_gpu_memory_utilization=0.05)
    assert found.smallest_card >= 2 * parameters(QWEN3_1_7B) / 0.05


def test_rows_that_are_padded_take_a_mask_of_every_pair_of_tokens():
    """A byte in the mask that transformers makes, and a bias of two that SDPA makes of it in bf16."""
    padding = torch.ones(3, 40, dtype=torch.bool)
    assert sdpa_mask(3, 40, 40, attention_mask=padding) is None
    padding[0, 0] = False
    mask = sdpa_mask(3, 40, 40, attention_mask=padding)
    assert mask.nbytes == mask.untyped_storage().nbytes() == 3 * 40**2
    # few rows, so that a backward pass is largest at its start
    masked, none = (of(64, 1024, attn_implementation=each).working for each in ("sdpa", "flash_attention_2"))
    assert masked - none == 3 * 64 * (1024 + of_memory.PROMPT_TOKENS) ** 2


def test_a_sharded_reference_is_gathered_beside_the_output_layer_of_the_policy():
    """In bf16: two copies and a half of the reference, and one of that layer."""
    untied = QWEN3_1_7B | {"tie_word_embeddings": False}
    smaller, larger = (
        of(1, 64, 2, untied | {"vocab_size": each}, beta=0.04, sharding="fsdp") for each in (10**5, 10**6)
    )
    more = vocabulary(untied | {"vocab_size": 9 * 10**5})
    assert larger.working - smaller.working == 2 * (2.5 * 2 * more + more)


@pytest.mark.parametrize(
    ("gpus", "training", "models"),
    [
        (1, {"beta": 0.04}, 1),
        (2, {"beta": 0.04}, 2),
        (2, {"beta": 0.04, "sharding": "fsdp"}, 4),
        (2, {"beta": 0.0, "sharding": "fsdp"}, 2),
        (2, {"beta": 0.04, "sharding": "fsdp", "lora": {"r": 4}}, 2),
    ],
    ids=str,
)
def test_every_process_starts_with_whole_models_in_the_machines_memory(gpus, training, models):
    assert of(1, 64, gpus, **training).host == models * 4 * parameters(QWEN3_1_7B) + gpus * OF_PROCESS


def disk_of(is_saved, **training):
    return disk(replace(runs.RUN, training=training), QWEN3_1_7B, is_saved)


def test_disk_is_for_two_checkpoints_and_the_models_that_wait():
    count = parameters(QWEN3_1_7B)
    assert disk_of(True) == ((2 * 12 + 4) * count, 12 * count)
    assert disk_of(True, sharding="fsdp") == ((2 * 16 + 4) * count, 16 * count)
    assert disk_of(False) == (4 * count, 0)
    selected = {"select_checkpoint": "best-on-test"}
    assert disk_of(False, **selected) == ((3 * 4 + 4) * count, 4 * count)
    assert disk_of(False, sharding="fsdp", **selected) == ((3 * 16 + 4) * count, 16 * count)
    assert disk_of(True, select_checkpoint="best-on-test")[0] == (3 * 12 + 4) * count
    assert disk_of(True, lora={"r": 4})[0] < 4.1 * count
    assert disk(runs.RUN, QWEN3_1_7B, False, models=2)[0] == 2 * 4 * count


@pytest.mark.parametrize("change", [{"num_experts": 8}, {"model_type": "gemma3"}, {"hidden_size": None}], ids=str)
def test_what_is_not_known_is_not_computed(change):
    assert is_known(QWEN3_1_7B) and not is_known(QWEN3_1_7B | change)
