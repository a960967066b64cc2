"""What folders of the hub bring beside weights: penalties, no padding token, several ends, more ids than tokens."""

import json

from training_jobs import changed, job, make_inputs, steps
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo.files import read_jsonl
from mcgrpo.generate.engines import ends_of, generation_config_of
from mcgrpo.records import Group
from mcgrpo.train.job import run_job

TIMES = ("seconds", "time", "runtime", "per_second")


def with_config(folder, **fields):
    """Inputs of a training whose model has this in its generation config."""
    inputs = make_inputs(folder / "inputs")
    path = inputs / "model/generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return inputs


def numbers(folder):
    """The metrics of each step without times."""
    return [{k: v for k, v in row.items() if not any(part in k for part in TIMES)} for row in steps(folder / "run")]


def lengths(folder):
    return {tokens for group in read_jsonl(folder / "run/groups.jsonl", Group) for tokens in group.lengths}


def test_sampling_habits_and_a_missing_padding_token_change_no_rollout(tmp_path):
    """Qwen2.5-7B-Instruct has a repetition penalty of 1.05, Llama-3.2 no padding token; TRL draws without either."""
    run, ends = changed(beta=0.04, max_steps=2), {"eos_token_id": [1, 5]}
    habits = {"repetition_penalty": 9.0, "top_k": 2, "top_p": 0.1, "temperature": 0.1, "do_sample": True}
    plain, other = tmp_path / "plain", tmp_path / "other"
    inputs = with_config(other, **ends, **habits)
    tokenizer = AutoTokenizer.from_pretrained(inputs / "model")
    tokenizer.pad_token = None
    tokenizer.save_pretrained(inputs / "model")
    run_job(job(with_config(plain, **ends), plain, run))
    run_job(job(inputs, other, run))
    assert numbers(plain) == numbers(other) and len(numbers(plain)) == 2
    assert ends_of(generation_config_of(other / "weights"), tokenizer) == {tokenizer.eos_token_id, 5}


def test_each_end_of_the_generation_config_ends_a_rollout(tmp_path):
    """Qwen2.5 ends with one of two tokens, Llama-3.2 with one of three; here with any but the tokenizer's."""
    tokenizer = AutoTokenizer.from_pretrained(make_inputs(tmp_path / "other") / "model")
    ends = [token for token in range(len(tokenizer)) if token != tokenizer.eos_token_id]
    run_job(job(with_config(tmp_path, eos_token_id=ends), tmp_path, changed(max_steps=1)))
    assert lengths(tmp_path) == {1}


def test_ids_without_a_token_are_drawn_and_read_as_nothing(tmp_path):
    """Qwen2.5-7B-Instruct has 152,064 rows of embeddings for 151,665 tokens; here most ids have no token."""
    inputs = make_inputs(tmp_path / "inputs")
    model = AutoModelForCausalLM.from_pretrained(inputs / "model")
    tokenizer = AutoTokenizer.from_pretrained(inputs / "model")
    model.resize_token_embeddings(9 * len(tokenizer))
    model.save_pretrained(inputs / "model")
    assert tokenizer.decode([8 * len(tokenizer)], skip_special_tokens=True) == ""
    run_job(job(inputs, tmp_path, changed(max_steps=1), rollout_tables={"steps": 1, "prompts": 4}))
    assert max(lengths(tmp_path)) == 8
