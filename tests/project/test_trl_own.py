"""`make test-trl-own` without a checkout: what it builds can be loaded, and its table tells every test's outcome."""

import sys
from pathlib import Path

from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[1]))
from trl_own import material, outcomes

LISTED = "test_warning_raised_all_rewards_none"


def test_models_and_data_are_found_by_their_names_without_a_hub(tmp_path, monkeypatch):
    material.write(tmp_path, material.PROMPTS[:4])
    monkeypatch.chdir(tmp_path)
    for name in [*material.MODELS[:8], material.REMOTE]:
        model = AutoModelForCausalLM.from_pretrained(f"trl-internal-testing/{name}", trust_remote_code=True)
        tokenizer = AutoTokenizer.from_pretrained(f"trl-internal-testing/{name}", trust_remote_code=True)
        assert tokenizer.eos_token_id == model.config.eos_token_id < model.config.vocab_size
    read = load_dataset("trl-internal-testing/zen", "conversational_prompt_only", cache_dir=str(tmp_path / "cache"))
    assert [row["prompt"][0]["content"] for row in read["train"]] == material.PROMPTS[:4]


def test_a_failure_is_a_failure_unless_it_is_trls_too_or_listed():
    theirs = {"test_a": "passed", "test_b": "failed", "test_c": "passed", LISTED: "passed", "not run": "passed"}
    ours = {"test_a": "passed", "test_b": "failed", "test_c": "failed", LISTED: "failed"}
    run = outcomes.sort("median-mad", ours, theirs)
    assert run["failed"] == ["test_c", "not run"]
    assert (run["failed with TRL too"], run["different on purpose"]) == (["test_b"], [LISTED])
    assert "| ours | 1 | 1 | 1 | 0 | 2 |" in outcomes.table({"ours": run})
    assert LISTED in outcomes.table({"ours": run})
