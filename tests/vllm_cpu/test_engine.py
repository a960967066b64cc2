"""Evaluation with a real vLLM: the completions of the engine that transformers is."""

import os

import psutil
import pytest
import torch
from tiny_training import model_folder
from training_jobs import changed

from mcgrpo.generate.engines import VLLMEngine, load
from mcgrpo.train.arguments import arguments_of

SETTINGS = {"temperature": 1.0, "top_p": 0.9, "max_new_tokens": 12, "backend": "vllm", "dtype": "float32"}
QUESTIONS = ["Sam has 3 cards.", "Sam has 4 cards.", "Mia has 12 apples and 2 pears.", "2"]


@pytest.fixture(scope="module")
def engine():
    engine = load(model_folder(), {**SETTINGS, "vllm_gpu_memory_utilization": 0.5})
    assert isinstance(engine, VLLMEngine)
    return engine


@pytest.fixture(scope="module")
def prompts(engine):
    return engine.tokenizer(QUESTIONS)["input_ids"]


def test_it_is_in_the_process_of_the_job(engine):
    """For one GPU nothing is forked: a forked process could not use one that this process has touched."""
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    children = [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]
    assert [child for child in children if "resource_tracker" not in child] == []


def test_greedy_completions_are_those_of_transformers(engine, prompts):
    reference = load(model_folder(), SETTINGS | {"backend": "transformers"})
    assert engine.llm.llm_engine.model_config.dtype == reference.model.dtype == torch.float32
    assert engine.ends == reference.ends
    batches = [(prompts, "greedy", 0)]
    assert engine.complete(batches, SETTINGS) == reference.complete(batches, SETTINGS)


def test_an_end_of_the_generation_config_ends_a_completion(engine, prompts):
    (text, _), *_ = engine.complete([(prompts, "greedy", 0)], SETTINGS)[0]
    tokens = engine.tokenizer(text, add_special_tokens=False)["input_ids"]
    ends, engine.ends = engine.ends, engine.ends | {tokens[2]}
    try:
        (shorter, reason), *_ = engine.complete([(prompts, "greedy", 0)], SETTINGS)[0]
    finally:
        engine.ends = ends
    assert reason == "stop" and len(shorter) < len(text) and text.startswith(shorter)


def test_a_seed_decides_what_is_sampled_whatever_is_drawn_beside_it(engine, prompts):
    drawn = engine.complete([(prompts, "sampled", 5)], SETTINGS)[0]
    assert engine.complete([(prompts[:2], "sampled", 5)], SETTINGS)[0] == drawn[:2]
    assert engine.complete([(prompts, "sampled", 5)], SETTINGS)[0] == drawn
    assert engine.complete([(prompts, "sampled", 9)], SETTINGS)[0] != drawn
    same = engine.complete([(prompts[:1] * 4, "sampled", 5)], SETTINGS)[0]
    assert len({text for text, _ in same}) > 1


def test_batches_are_drawn_at_once_as_each_alone(engine, prompts, monkeypatch):
    batches = [(prompts, "greedy", 0), (prompts[:2], "sampled", 5), (prompts, "sampled", 9)]
    alone = [engine.complete([batch], SETTINGS)[0] for batch in batches]
    calls, generate = [], engine.llm.generate
    monkeypatch.setattr(engine.llm, "generate", lambda *args, **more: calls.append(args) or generate(*args, **more))
    assert engine.complete(batches, SETTINGS) == alone
    assert len(calls) == 1


@pytest.mark.parametrize("decoding", ["greedy", "sampled"])
def test_a_stop_string_ends_a_completion_and_is_its_end(engine, prompts, decoding):
    whole = engine.complete([(prompts, decoding, 0)], SETTINGS)[0]
    stop = next(text for text, _ in whole if len(text) > 5)[2:4]
    ended = engine.complete([(prompts, decoding, 0)], SETTINGS | {"stop": [stop]})[0]
    for (text, reason), (full, full_reason) in zip(ended, whole, strict=True):
        cut = full.find(stop)
        assert text == (full[: cut + len(stop)] if cut >= 0 else full)
        assert reason == ("stop" if cut >= 0 else full_reason)


def test_stop_strings_end_the_same_completions_with_both_backends(engine, prompts):
    reference = load(model_folder(), SETTINGS | {"backend": "transformers"})
    stop = {"stop": [engine.complete([(prompts, "greedy", 0)], SETTINGS)[0][0][0][1:3]]}
    ours, theirs = (each.complete([(prompts, "greedy", 0)], SETTINGS | stop)[0] for each in (engine, reference))
    assert ours == theirs and ours[0][1] == "stop"


def test_the_stop_strings_of_a_training_are_handed_to_trl(tmp_path):
    run = changed(use_vllm=True, stop=["\nQuestion:"])
    assert arguments_of(run, tmp_path, 0).generation_kwargs == {"stop": ["\nQuestion:"]}
