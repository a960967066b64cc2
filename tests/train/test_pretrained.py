"""What a pre-trained model can break: SmolLM2-135M-Instruct with its template, its vocabulary and its 30 layers.

Skipped where its folder is not: `make resources/smollm2/source.json`, or its path in SMOLLM2.
"""

import os
import sys
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo.data.prompts import as_prompt, render
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


@pytest.fixture
def loaded():
    return AutoModelForCausalLM.from_pretrained(FOLDER), AutoTokenizer.from_pretrained(FOLDER, padding_side="left")


def test_prompts_of_different_lengths_get_the_answers_that_each_gets_alone(loaded):
    prompts = loaded[1](render([as_prompt("chat", each) for each in QUESTIONS], loaded[1], {}))["input_ids"]
    engine, settings = TransformersEngine(*loaded), {"max_new_tokens": 12}
    together = engine.complete([(prompts, "greedy", 0)], settings)[0]
    assert together == [engine.complete([([prompt], "greedy", 0)], settings)[0][0] for prompt in prompts]
    assert "4" in together[0][0] and together[0][1] == "stop"


def test_the_script_that_makes_it_refuses_another_end_token(loaded):
    smollm2.check(*loaded)
    loaded[0].generation_config.eos_token_id = 0
    with pytest.raises(SystemExit, match=r"What is the capital of France\? is answered by"):
        smollm2.check(*loaded)
