"""Evaluation with a real vLLM: the completions of the engine that transformers is."""

import pytest
import torch
from tiny_training import model_folder

from mcgrpo.generate.engines import VLLMEngine, load

SETTINGS = {"temperature": 1.0, "top_p": 0.9, "max_new_tokens": 12, "backend": "vllm"}
QUESTIONS = ["Sam has 3 cards.", "Sam has 4 cards.", "Mia has 12 apples and 2 pears.", "2"]


@pytest.fixture(scope="module")
def engine():
    engine = load(model_folder(), {**SETTINGS, "vllm_gpu_memory_utilization": 0.5})
    assert isinstance(engine, VLLMEngine)
    return engine


@pytest.fixture(scope="module")
def prompts(engine):
    return engine.tokenizer(QUESTIONS)["input_ids"]


def test_greedy_completions_are_those_of_transformers(engine, prompts):
    reference = load(model_folder(), SETTINGS | {"backend": "transformers"})
    assert engine.llm.llm_engine.model_config.dtype == reference.model.dtype == torch.float32
    assert engine.ends == reference.ends
    assert engine.complete(prompts, "greedy", 0, SETTINGS) == reference.complete(prompts, "greedy", 0, SETTINGS)


def test_an_end_of_the_generation_config_ends_a_completion(engine, prompts):
    (text, _), *_ = engine.complete(prompts, "greedy", 0, SETTINGS)
    tokens = engine.tokenizer(text, add_special_tokens=False)["input_ids"]
    ends, engine.ends = engine.ends, engine.ends | {tokens[2]}
    try:
        (shorter, reason), *_ = engine.complete(prompts, "greedy", 0, SETTINGS)
    finally:
        engine.ends = ends
    assert reason == "stop" and len(shorter) < len(text) and text.startswith(shorter)


def test_a_seed_decides_what_is_sampled_whatever_is_drawn_beside_it(engine, prompts):
    drawn = engine.complete(prompts, "sampled", 5, SETTINGS)
    assert engine.complete(prompts[:2], "sampled", 5, SETTINGS) == drawn[:2]
    assert engine.complete(prompts, "sampled", 5, SETTINGS) == drawn
    assert engine.complete(prompts, "sampled", 9, SETTINGS) != drawn
    same = engine.complete(prompts[:1] * 4, "sampled", 5, SETTINGS)
    assert len({text for text, _ in same}) > 1
