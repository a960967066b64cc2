"""`make test-trl-own` without a checkout: what it builds can be loaded, and its table tells every test's outcome."""

import sys
from pathlib import Path

import pytest
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[1]))
from trl_own import material, outcomes

REPORT = """<testsuites><testsuite>
<testcase name="test_a"/><testcase name="test_b"><failure/></testcase><testcase name="test_c"><skipped/></testcase>
</testsuite></testsuites>"""
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


def test_fixed_rows_mean_the_same_in_our_vocabulary():
    qwen = [151657, 4913, 606, 788, 330, 35744, 497, 330, 16370, 788, 5212, 9520, 788, 220, 16, 11248, 151658, 151645]
    row = material.own_ids(f"  {qwen},\n").strip(" ,\n")
    expected = '<tool_call>{"name": "increment", "arguments": {"step": 1}}\n</tool_call><|im_end|>'
    assert material.tokenizer().decode([int(i) for i in row[1:-1].split(",")]) == expected
    assert material.own_ids("steps = 606\n") == "steps = 606\n"


def test_a_failure_is_a_failure_unless_it_is_trls_too_or_listed():
    theirs = {"test_a": "passed", "test_b": "failed", "test_c": "passed", LISTED: "passed", "not run": "passed"}
    ours = {"test_a": "passed", "test_b": "failed", "test_c": "failed", LISTED: "failed"}
    run = outcomes.sort("median-mad", ours, theirs)
    assert run["failed"] == ["test_c", "not run"]
    assert (run["failed with TRL too"], run["different on purpose"]) == (["test_b"], [LISTED])
    assert "| ours | 1 | 1 | 1 | 0 | 2 |" in outcomes.table({"ours": run})
    assert LISTED in outcomes.table({"ours": run})


def test_outcomes_are_read_and_written_between_the_marks(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    assert outcomes.read(tmp_path / "report.xml") == {"test_a": "passed", "test_b": "failed", "test_c": "skipped"}
    document = tmp_path / "page.md"
    document.write_text(f"before\n{outcomes.BEGIN}\nold\n{outcomes.END}\nafter\n")
    outcomes.write_into(document, "new")
    assert document.read_text() == f"before\n{outcomes.BEGIN}\n\nnew\n\n{outcomes.END}\nafter\n"
    with pytest.raises(ValueError, match="lacks"):
        outcomes.write_into(tmp_path / "report.xml", "new")


def test_the_document_has_the_marks():
    text = (Path(__file__).parents[2] / "docs/drop-in.md").read_text()
    assert text.index(outcomes.BEGIN) < text.index(outcomes.END)
