"""Decoding steps in fewer calls are those of transformers, bit for bit."""

import copy

import peft
import pytest
import torch
from transformers import GenerationConfig, set_seed

from mcgrpo.data.decoding import with_quick_decoding
from mcgrpo.data.sampling import sampling
from mcgrpo.data.toy.models import create

SHAPE = {"hidden_size": 64, "layers": 2, "heads": 2, "intermediate_size": 96, "seed": 5}
TEXTS = ("Sam has 5 cards.", "Sam has 5 cards and 3 apples.", "How many?")
PADDED = pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1] * 3], ids=["padded", "unpadded"])


@pytest.fixture(scope="module", params=["qwen3", pytest.param("llama", marks=pytest.mark.slow)])
def models(request):
    """The model with and without the short way, their tokenizer, and the calls of the first one's layers."""
    plain, tokenizer = create(SHAPE | {"architecture": request.param})
    quick, calls = with_quick_decoding(copy.deepcopy(plain)), []
    quick.model.layers[0].register_forward_hook(lambda *_: calls.append(1))
    return plain, quick, tokenizer, calls


def generated(model, tokenizer, texts, **options):
    inputs = tokenizer(list(texts), padding=True, padding_side="left", return_tensors="pt")
    set_seed(0)
    return model.generate(
        **inputs, max_new_tokens=80, min_new_tokens=80, output_logits=True, return_dict_in_generate=True, **options
    )


@pytest.mark.slow
@PADDED
@pytest.mark.parametrize("options", [{"do_sample": False}, {"do_sample": True, "top_k": 20}, {"num_beams": 3}], ids=str)
def test_tokens_and_logits_are_those_of_transformers_to_the_bit(models, texts, options):
    plain, quick, tokenizer, calls = models
    calls.clear()
    expected, given = (generated(model, tokenizer, texts, **options) for model in (plain, quick))
    assert torch.equal(expected.sequences, given.sequences)
    assert all(map(torch.equal, expected.logits, given.logits)) and len(given.logits) == 80
    assert len(calls) == 1, "only the prompt takes the long way"


def test_a_prompt_is_computed_once_for_all_its_rollouts(models):
    plain, quick, tokenizer, _ = models
    rows = []
    hook = quick.model.layers[0].register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    texts = [TEXTS[0]] * 3 + [TEXTS[1]] + [TEXTS[0]] * 2
    expected, given = (generated(model, tokenizer, texts, do_sample=True, top_k=20) for model in (plain, quick))
    hook.remove()
    assert rows == [3] and torch.equal(expected.sequences, given.sequences)


@pytest.mark.parametrize("where", ["options", "config", "model"])
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7, "top_p": 0.9}], ids=["plain", "warped"])
def test_samples_are_drawn_with_one_number_a_row(models, settings, where, monkeypatch):
    """From the logits of transformers, wherever the settings come from; its own sampling is not called."""
    plain, quick, tokenizer, _ = models
    expected = generated(
        plain,
        tokenizer,
        TEXTS,
        do_sample=False,
        logits_processor=sampling(**{"temperature": 1.0, "top_p": 1.0} | settings),
    )
    monkeypatch.delattr(torch, "multinomial")
    sampled = GenerationConfig(
        do_sample=True, top_k=0, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, **settings
    )
    if where == "model":
        monkeypatch.setattr(quick, "generation_config", sampled)
    options = {
        "options": {"do_sample": True, "top_k": 0, **settings},
        "config": {"generation_config": sampled},
        "model": {},
    }
    given = generated(quick, tokenizer, TEXTS, **options[where])
    assert torch.equal(expected.sequences, given.sequences)
    assert all(map(torch.equal, expected.logits, given.logits))
    assert quick.generation_config.do_sample is (True if where == "model" else plain.generation_config.do_sample)


def test_a_step_uses_the_weights_as_they_are_now(models):
    _, quick, tokenizer, _ = models
    changed = copy.deepcopy(quick)
    before = generated(changed, tokenizer, TEXTS, do_sample=False)
    with torch.no_grad():
        for parameter in changed.parameters():
            parameter.mul_(-1.1)
    after = generated(changed, tokenizer, TEXTS, do_sample=False)
    changed.model.forward = changed.model.forward.forward
    assert not torch.equal(before.sequences, after.sequences)
    assert torch.equal(generated(changed, tokenizer, TEXTS, do_sample=False).sequences, after.sequences)


@pytest.mark.slow
@pytest.mark.parametrize("weights, autocast", [(torch.bfloat16, False), (torch.float32, True)])
def test_bf16_and_autocast_are_those_of_transformers_to_the_bit(models, weights, autocast):
    plain, _, tokenizer, _ = models
    pair = plain, with_quick_decoding(copy.deepcopy(plain))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        expected, given = (generated(copy.deepcopy(m).to(weights), tokenizer, TEXTS, do_sample=False) for m in pair)
    assert torch.equal(expected.sequences, given.sequences)
    assert all(map(torch.equal, expected.logits, given.logits))


@pytest.mark.slow
def test_adapters_and_gradients_take_the_long_way(models):
    plain, quick, tokenizer, calls = models
    config = peft.LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)
    set_seed(1)
    adapted = peft.get_peft_model(copy.deepcopy(plain), config)
    set_seed(1)
    expected, given = (
        generated(model, tokenizer, TEXTS, do_sample=False)
        for model in (adapted, peft.get_peft_model(with_quick_decoding(copy.deepcopy(plain)), config))
    )
    assert all(map(torch.equal, expected.logits, given.logits))
    calls.clear()
    prompt = tokenizer(list(TEXTS[:1]), return_tensors="pt")
    cache = quick(**prompt).past_key_values
    step = torch.tensor([[7]])
    assert quick(step, past_key_values=cache).logits.requires_grad and len(calls) == 2


def test_a_model_with_other_operations_is_left_alone():
    from transformers import Qwen3Config, Qwen3ForCausalLM

    shape = {"vocab_size": 9, "hidden_size": 8, "head_dim": 4, "num_attention_heads": 2, "intermediate_size": 8}
    for changed in ({"num_key_value_heads": 1}, {"attention_bias": True}, {"hidden_act": "gelu"}):
        model = Qwen3ForCausalLM(Qwen3Config(**shape, **({"num_key_value_heads": 2} | changed), num_hidden_layers=1))
        assert "forward" not in vars(with_quick_decoding(model).model)
