"""What a model's context holds of the lengths that a study asks for, before anything is downloaded."""

import pytest
from studies import changed, load, refused

from mcgrpo.study.check import check
from mcgrpo.study.context import check_training, context_of

LENGTHS = {"max_completion_length": 3072, "use_vllm": True}


@pytest.mark.parametrize(
    ("known", "tokenizer_length", "expected"),
    [
        ({"max_position_embeddings": 4096}, None, 4096),
        ({"max_position_embeddings": 32768}, 1e30, 32768),  # what tokenizers without a limit say
        ({"max_position_embeddings": 262144}, 131072, 131072),
        ({"max_position_embeddings": 32768, "use_sliding_window": False, "sliding_window": 4096}, None, 32768),
        ({"max_position_embeddings": 4096, "use_sliding_window": True, "sliding_window": 1024}, None, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2.0}}, None, 8192),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 32.0}}, None, 131072),
        ({"max_position_embeddings": 40960, "rope_parameters": {"rope_type": "default"}}, None, 40960),
        ({}, 100, None),
    ],
)
def test_the_context_is_what_vllm_takes_for_it(known, tokenizer_length, expected):
    assert context_of(known, tokenizer_length) == expected


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"vllm_max_model_length": 5120}, "vllm_max_model_length=5120 is more than the model's context of 4096"),
        ({"max_completion_length": 4096}, "max_completion_length=4096 tokens do not fit .* 4096 beside a prompt"),
        ({"max_prompt_length": 1025}, "=3072 . max_prompt_length=1025 tokens do not fit the model's context of 4096"),
        (
            {"max_prompt_length": 512, "vllm_max_model_length": 3500},
            "=3072 . max_prompt_length=512 tokens do not fit vllm_max_model_length of 3500: lower one",
        ),
    ],
)
def test_lengths_that_do_not_fit_are_refused_with_their_numbers(training, message):
    with pytest.raises(ValueError, match=message):
        check_training(LENGTHS | training, 4096)


def test_lengths_that_fit_to_the_token_are_taken():
    check_training(LENGTHS | {"max_prompt_length": 1024, "vllm_max_model_length": 4096}, 4096)
    check_training(LENGTHS | {"vllm_max_model_length": 5120, "use_vllm": False}, 4096)  # vLLM's length is not used
    check_training(LENGTHS | {"vllm_max_model_length": 5120}, None)


def test_a_study_whose_training_does_not_fit_a_model_is_refused_when_it_is_read():
    """As config.yaml was: 5120 tokens asked of Qwen2.5-Math-1.5B, which has 4096."""
    config = load("config")
    longer = {"settings": {"qwen2.5-math-1.5b-math": {"training": {"vllm_max_model_length": 5120}}}}
    line = refused(changed(config, longer))
    assert line.startswith("run qwen2.5-math-1.5b-math/") and "5120" in line and "4096" in line
    check(config)
