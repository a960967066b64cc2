"""What a pre-trained model can break: SmolLM2-135M-Instruct with its template, its vocabulary and its 30 layers.

Skipped where its folder is not: `make resources/smollm2/source.json`, or its path in SMOLLM2.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from learning_trainings import run
from training_jobs import RUN, job, outcome, steps
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo.data.prompts import as_prompt, render
from mcgrpo.data.toy.examples import examples
from mcgrpo.files import write_jsonl
from mcgrpo.generate.engines import TransformersEngine

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))
import smollm2  # noqa: E402

FOLDER = Path(os.environ.get("SMOLLM2", ROOT / "resources/smollm2"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (FOLDER / "config.json").is_file(), reason="no SmolLM2: make resources/smollm2/source.json"),
]
QUESTIONS = ["What is 2 + 2?", "What is the capital of France, and of Italy?", "Count to three."]
SETTINGS = {"samples": 2, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 12, "batch_size": 4}
SHORT = {"per_device_train_batch_size": 2, "max_steps": 2, "max_completion_length": 6, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER, padding_side="left")


def engine(tokenizer, folder=FOLDER):
    return TransformersEngine(AutoModelForCausalLM.from_pretrained(folder), tokenizer, SETTINGS)


def ids_of(tokenizer, template="chat"):
    return tokenizer(render([as_prompt(template, each) for each in QUESTIONS], tokenizer, {}))["input_ids"]


@pytest.fixture
def inputs(tmp_path):
    """The model as a link, and two questions."""
    (tmp_path / "model").symlink_to(FOLDER.resolve())
    write_jsonl(tmp_path / "data.jsonl", [*examples("two-step", "train", 4, 0), *examples("two-step", "test", 2, 0)])
    return tmp_path


def trained(inputs, name, **training):
    """A training of two steps of one prompt."""
    changed = replace(RUN, prompt="chat", training={**SHORT, **training})
    return job(inputs, inputs / name, changed, save_steps=1)


def test_the_script_that_makes_it_refuses_another_end_token(tokenizer):
    model = AutoModelForCausalLM.from_pretrained(FOLDER)
    smollm2.check(model, tokenizer)
    model.generation_config.eos_token_id = 0
    with pytest.raises(SystemExit, match=r"What is the capital of France\? is answered by"):
        smollm2.check(model, tokenizer)


def test_its_template_adds_a_system_message_unless_the_prompt_has_one(tokenizer):
    chat, ours, plain = (render([as_prompt(name, "1 + 1?")], tokenizer, {})[0] for name in ("chat", "gsm8k", "plain"))
    assert "You are a helpful AI assistant named SmolLM" in chat and chat.count("<|im_start|>system") == 1
    assert "SmolLM" not in ours and ours.count("<|im_start|>system") == 1
    assert plain == "1 + 1?" and chat.endswith("<|im_start|>assistant\n")


def test_prompts_of_different_lengths_get_the_answers_that_each_gets_alone(tokenizer):
    prompts, model = ids_of(tokenizer), engine(tokenizer)
    assert len({*map(len, prompts)}) == len(prompts)
    together = model.complete(prompts, "greedy", 0)
    assert together == [model.complete([prompt], "greedy", 0)[0] for prompt in prompts]
    assert "4" in together[0][0] and together[0][1] == "stop"


@pytest.mark.parametrize("training", [{"beta": 0.0}, {"beta": 0.04}, {"bf16": True}], ids=str)
def test_a_trained_adapter_is_merged_into_weights_that_plain_transformers_load(inputs, tokenizer, training):
    made = trained(inputs, "lora", lora={"r": 4, "target_modules": "all-linear"}, **training)
    done = run(made)
    assert done.returncode == 0, done.stderr[-2000:]
    assert outcome(made.output)["status"] == "finished" and len(steps(made.output)) == 2
    merged, base = (AutoModelForCausalLM.from_pretrained(folder) for folder in (made.weights, FOLDER))
    assert merged.num_parameters() == base.num_parameters() and not hasattr(merged, "peft_config")
    assert engine(tokenizer, made.weights).complete(ids_of(tokenizer), "greedy", 0)
