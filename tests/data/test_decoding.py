"""Decoding in fewer calls gives the logits of transformers, bit for bit."""

import copy

import peft
import pytest
import torch
from transformers import GenerationConfig, LogitsProcessorList, set_seed

from mcgrpo.data.decoding import Decoder, with_quick_decoding
from mcgrpo.data.sampling import InverseTransform
from mcgrpo.data.toy.models import create

SHAPE = {"hidden_size": 64, "layers": 2, "heads": 2, "intermediate_size": 96, "seed": 5}
TEXTS = ("Sam has 5 cards.", "Sam has 5 cards and 3 apples.", "How many?")
PADDED = pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1] * 3], ids=["padded", "unpadded"])
GREEDY = {"do_sample": False}
TOP_20 = {"do_sample": True, "top_k": 20}


@pytest.fixture(scope="module", params=["qwen3", pytest.param("llama", marks=pytest.mark.slow)])
def models(request):
    """The model with and without the short way, their tokenizer, and the calls of the first one's layers."""
    plain, tokenizer = create(SHAPE | {"architecture": request.param})
    quick, calls = with_quick_decoding(copy.deepcopy(plain)), []
    quick.model.layers[0].register_forward_hook(lambda *_: calls.append(1))
    return plain, quick, tokenizer, calls


def generated(model, tokenizer, texts, length=80, processors=(), **options):
    """Prompts and completions of 80 tokens, and the logits of each step."""
    inputs = tokenizer(list(texts), padding=True, padding_side="left", return_tensors="pt")
    logits = []

    def look(_, scores):
        logits.append(scores.clone())
        return scores

    options |= {"max_new_tokens": length, "logits_processor": LogitsProcessorList([look, *processors])}
    set_seed(0)
    return model.generate(**inputs, **{"min_new_tokens": length} | options), logits


def equal(expected, given):
    return torch.equal(expected[0], given[0]) and all(map(torch.equal, expected[1], given[1]))


class Inverse:
    """Sampling by `InverseTransform` within `generate(do_sample=False)` of transformers."""

    draw = None

    def __call__(self, input_ids, scores):
        self.draw = self.draw or InverseTransform(input_ids)
        drawn = self.draw(scores, input_ids.size(1), torch.arange(len(input_ids)))
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn.unsqueeze(1), 0.0)


@pytest.mark.slow
@PADDED
@pytest.mark.parametrize("options", [GREEDY, {"num_beams": 3}, {"num_beams": 2, **TOP_20}], ids=str)
def test_tokens_and_logits_are_those_of_transformers_to_the_bit(models, texts, options):
    plain, quick, tokenizer, calls = models
    calls.clear()
    expected, given = (generated(model, tokenizer, texts, **options) for model in (plain, quick))
    assert equal(expected, given) and len(given[1]) == 80
    assert len(calls) == (1 if options == GREEDY else 80), "greedily, only the prompt takes the long way"


@PADDED
def test_samples_are_drawn_from_the_logits_of_transformers(models, texts, monkeypatch):
    """With one random number a row, after all that transformers does to logits; its own sampling is not called."""
    plain, quick, tokenizer, _ = models
    expected = generated(plain, tokenizer, texts, processors=[Inverse()], do_sample=False)
    monkeypatch.delattr(torch, "multinomial")
    assert equal(expected, generated(quick, tokenizer, texts, do_sample=True, top_k=0))
    (tokens, _), (of_two, _) = (generated(quick, tokenizer, texts, **TOP_20 | {"top_k": k}) for k in (1, 2))
    assert tokens.equal(generated(quick, tokenizer, texts, **GREEDY)[0]) and not tokens.equal(of_two)


@pytest.mark.parametrize("where", ["options", "config", "model"])
def test_settings_are_those_that_transformers_would_take(models, where, monkeypatch):
    _, quick, tokenizer, _ = models
    settings = {"do_sample": True, "top_k": 0, "temperature": 0.7, "top_p": 0.9}
    expected = generated(quick, tokenizer, TEXTS, **settings)
    sampled = GenerationConfig(**settings, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    if where == "model":
        monkeypatch.setattr(quick, "generation_config", sampled)
    options = {"options": settings, "config": {"generation_config": sampled}, "model": {}}
    assert equal(expected, generated(quick, tokenizer, TEXTS, **options[where]))


@pytest.mark.parametrize("options", [GREEDY, {"do_sample": True, "top_k": 0}], ids=str)
def test_rows_that_have_ended_are_padded_and_left_out(models, options, monkeypatch):
    """Completions end at different lengths, and are those of rows that are all computed to the end."""
    plain, quick, tokenizer, _ = models
    texts = [text for text in TEXTS for _ in range(8)]
    ends = list(range(0, len(tokenizer), 4)) if options == GREEDY else list(range(0, len(tokenizer), 9))
    settings = {"length": 40, "min_new_tokens": 0, "eos_token_id": ends}
    processors = [Inverse()] if options["do_sample"] else []
    expected, _ = generated(plain, tokenizer, texts, processors=processors, do_sample=False, **settings)
    kept, keep = [], Decoder.keep
    monkeypatch.setattr(Decoder, "keep", lambda self, rows: (kept.append(int(rows.sum())), keep(self, rows)))
    given, _ = generated(quick, tokenizer, texts, **options, **settings)
    assert torch.equal(expected, given)
    assert (given[:, -1] == tokenizer.pad_token_id).any() and kept and kept == sorted(kept, reverse=True)


def test_a_prompt_is_computed_once_for_all_its_rollouts(models):
    plain, quick, tokenizer, _ = models
    rows = []
    hook = quick.model.layers[0].register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    texts = [TEXTS[0]] * 3 + [TEXTS[1]] + [TEXTS[0]] * 2
    expected, given = (generated(model, tokenizer, texts, **GREEDY) for model in (plain, quick))
    hook.remove()
    assert rows == [3] and torch.equal(expected[0], given[0])


def test_where_weights_are_fixed_the_same_prompts_are_not_computed_again(models):
    plain, _, tokenizer, _ = models
    fixed, rows = with_quick_decoding(copy.deepcopy(plain), fixed=True), []
    fixed.model.layers[0].register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    for texts in (TEXTS, TEXTS, TEXTS[:2], TEXTS):
        assert equal(*(generated(model, tokenizer, texts, **GREEDY, length=9) for model in (plain, fixed)))
    assert rows == [3, 2, 3]
    sampled = {"do_sample": True, "top_k": 0}
    expected = generated(plain, tokenizer, TEXTS, processors=[Inverse()], do_sample=False, length=9)
    assert equal(expected, generated(fixed, tokenizer, TEXTS, **sampled, length=9)) and len(rows) == 3


def test_a_step_uses_the_weights_as_they_are_now(models):
    _, quick, tokenizer, _ = models
    changed = copy.deepcopy(quick)
    before = generated(changed, tokenizer, TEXTS, **GREEDY)
    with torch.no_grad():
        for parameter in changed.parameters():
            parameter.mul_(-1.1)
    after = generated(changed, tokenizer, TEXTS, **GREEDY)
    del changed.generate
    assert not torch.equal(before[0], after[0])
    assert equal(generated(changed, tokenizer, TEXTS, **GREEDY), after)


@pytest.mark.slow
@pytest.mark.parametrize("weights, autocast", [(torch.bfloat16, False), (torch.float32, True)])
def test_bf16_and_autocast_are_those_of_transformers_to_the_bit(models, weights, autocast):
    plain, _, tokenizer, _ = models
    pair = plain, with_quick_decoding(copy.deepcopy(plain))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        expected, given = (generated(copy.deepcopy(m).to(weights), tokenizer, TEXTS, **TOP_20) for m in pair)
    assert equal(expected, given)


@pytest.mark.slow
def test_adapters_take_the_long_way(models):
    plain, _, tokenizer, _ = models
    config = peft.LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)
    set_seed(1)
    adapted = peft.get_peft_model(copy.deepcopy(plain), config)
    set_seed(1)
    expected, given = (
        generated(model, tokenizer, TEXTS, **TOP_20)
        for model in (adapted, peft.get_peft_model(with_quick_decoding(copy.deepcopy(plain)), config))
    )
    assert equal(expected, given)


def test_a_model_with_other_operations_is_left_alone():
    from transformers import Qwen3Config, Qwen3ForCausalLM

    shape = {"vocab_size": 9, "hidden_size": 8, "head_dim": 4, "num_attention_heads": 2, "intermediate_size": 8}
    linear = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
    others = ({"num_key_value_heads": 1}, {"attention_bias": True}, {"hidden_act": "gelu"}, {"rope_parameters": linear})
    for changed in others:
        model = Qwen3ForCausalLM(Qwen3Config(**shape, **({"num_key_value_heads": 2} | changed), num_hidden_layers=1))
        assert "generate" not in vars(with_quick_decoding(model))
