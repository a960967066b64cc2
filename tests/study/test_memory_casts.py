"""Autocast's copies of weights, and transformers' keys and values: what torch holds is what is counted."""

import torch
from casts import Casts
from memory_of import QWEN3_1_7B, SHAPE, of
from transformers import AutoConfig, AutoModelForCausalLM

from mcgrpo.study import memory as of_memory
from mcgrpo.study.memory import vocabulary


def casts_held(is_checkpointed, is_frozen=False):
    """Bytes of a small model's casts at the end of its layers, and when the forward pass is over."""
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("qwen3", **SHAPE)).model.train()
    if is_frozen:
        model.requires_grad_(False)
        model.enable_input_require_grads()
    if is_checkpointed:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    with Casts(weight for weight in model.parameters() if weight.dim() == 2) as casts:
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model(input_ids=torch.arange(7)[None], use_cache=False).last_hidden_state
            at_the_end = casts.held
        return at_the_end, casts.held, hidden


def test_autocast_keeps_its_copies_of_the_weights():
    """For the backward pass; with checkpointing until it begins, and of frozen weights none."""
    casts = of_memory._casts({"bf16": True}, SHAPE)
    assert casts_held(False)[:2] == (casts, casts)
    assert casts_held(True)[:2] == (casts, 0)
    assert casts_held(True, is_frozen=True)[:2] == (0, 0)
    assert casts_held(False, is_frozen=True)[1] > 0.9 * casts


def test_copies_of_the_weights_are_counted(monkeypatch):
    casts = of_memory._casts({"bf16": True}, QWEN3_1_7B)
    few = {"gradient_accumulation_steps": 2, "use_vllm": True}
    cases = [
        (64, {"gradient_checkpointing": False}, casts),
        (64, {"gradient_checkpointing": False, "bf16": False}, 0),
        (64, {"gradient_checkpointing": False, "lora": {"r": 4}}, casts),
        (64, {}, 0),  # a layer's activations are larger
    ]
    with_casts = [of(rows, 512, **more).working for rows, more, _ in cases]
    of_few = of(1, 64, **few).working
    monkeypatch.setattr(of_memory, "_casts", lambda training, shape: 0.0)
    assert 0 < of_few - of(1, 64, **few).working < casts  # in place of a layer's activations
    without = [of(rows, 512, **more).working for rows, more, _ in cases]
    assert [a - b for a, b in zip(with_casts, without, strict=True)] == [expected for _, _, expected in cases]


def test_transformers_keeps_keys_and_values_in_fp32_under_autocast():
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("qwen3", **SHAPE))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        layers = model(input_ids=torch.arange(7)[None], use_cache=True).past_key_values.layers
    assert sum(each.keys.nbytes + each.values.nbytes for each in layers) == of_memory._cache(SHAPE, 7, 4)


def test_a_generation_with_transformers_holds_copies_of_the_weights_in_bf16():
    """Of a long completion, whose keys and values are more than the update takes."""
    held = {"per_device_train_batch_size": 1, "steps_per_generation": 256}
    casts = of_memory._casts({"bf16": True}, QWEN3_1_7B) + 2 * vocabulary(QWEN3_1_7B)
    whole, adapters, in_fp32 = (
        of(1, 8192, **held, **more).working for more in ({}, {"lora": {"r": 4}}, {"bf16": False})
    )
    assert whole - adapters == whole - in_fp32 == casts
