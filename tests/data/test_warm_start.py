"""The warm start: a tiny model, toy problems, TRL's own trainer."""

import json
from dataclasses import asdict

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo.data import warm_start
from mcgrpo.data.prompts import as_prompt
from mcgrpo.data.toy.examples import examples
from mcgrpo.data.toy.models import build
from mcgrpo.data.warm_start import WarmStart
from mcgrpo.files import RecordError, write_jsonl
from mcgrpo.records import Example

SPEC = WarmStart(
    ["two-step"], steps=4, batch_size=8, learning_rate=1e-2, prompt="plain", task="gsm8k", max_new_tokens=24
)


@pytest.fixture
def folder(tmp_path):
    """With a model and a data set, whose `test` split nothing may read."""
    build(
        {"architecture": "qwen3", "hidden_size": 32, "heads": 1, "layers": 1, "intermediate_size": 32},
        tmp_path / "model",
    )
    rows = [row for split in ("warm", "train") for row in examples("two-step", split, 64, 0, (0.0, 0.2))]
    write_jsonl(tmp_path / "two-step.jsonl", [*rows, Example("t", "test", "1+1?", "2", "")])
    return tmp_path


def taught(folder, name="taught", **changes):
    spec = WarmStart(**asdict(SPEC) | changes)
    warm_start.warm_start(spec, folder / "model", [folder / "two-step.jsonl"], folder / name)
    return json.loads((folder / name / "warm_start.json").read_text())


def weights(folder):
    model = AutoModelForCausalLM.from_pretrained(folder)
    return torch.cat([parameter.flatten() for parameter in model.parameters()])


def test_it_learns_and_gives_the_same_weights_again(folder):
    record = taught(folder, steps=60)
    assert record["losses"][-1] < record["losses"][0] / 2 and record["steps"] == 60
    taught(folder, "again", steps=60)
    assert torch.equal(weights(folder / "taught"), weights(folder / "again"))
    assert not torch.equal(weights(folder / "taught"), weights(folder / "model"))
    assert AutoTokenizer.from_pretrained(folder / "taught").padding_side == "left"


class TestUntilSolved:
    def test_it_ends_at_the_first_check_that_finds_the_share(self, folder, monkeypatch, capsys):
        monkeypatch.setattr(warm_start, "CHECK_EVERY", 2)
        assert taught(folder, steps=50, until_solved=0.0)["steps"] == 2
        assert "of 64 held-out problems solved" in capsys.readouterr().out

    def test_one_that_does_not_get_there_is_an_error_and_leaves_nothing(self, folder):
        before = set(folder.iterdir())
        with pytest.raises(ValueError, match=r"until_solved 0\.9: 0\.000 of 64 held-out problems .* after 4 steps"):
            taught(folder, until_solved=0.9)
        assert set(folder.iterdir()) == before


def test_a_share_is_that_of_accurate_samples(folder):
    """Of a model that knows the answer to one of two problems by heart."""
    known, other = examples("two-step", "train", 2, 0)
    write_jsonl(folder / "two-step.jsonl", [Example("a", "warm", known.question, known.answer, known.solution)] * 8)
    taught(folder, steps=80)
    model = AutoModelForCausalLM.from_pretrained(folder / "taught")
    tokenizer = AutoTokenizer.from_pretrained(folder / "taught")
    torch.manual_seed(0)
    share = warm_start.share_solved(model, tokenizer, [known] * 30 + [other] * 10, SPEC)
    assert share == pytest.approx(0.75, abs=0.1)


def test_demonstrations_are_those_of_the_warm_split(folder):
    rows = warm_start.demonstrations([folder / "two-step.jsonl"], SPEC)
    own = {row.question: row.solution for row in examples("two-step", "warm", 64, 0, (0.0, 0.2))}
    assert {row["prompt"]: row["completion"] for row in rows} == own


def test_messages_for_a_model_with_a_template(folder):
    spec = WarmStart(**asdict(SPEC) | {"prompt": "chat", "chat_template_kwargs": {"enable_thinking": False}})
    (row, *_) = warm_start.demonstrations([folder / "two-step.jsonl"], spec)
    assert row["chat_template_kwargs"] == {"enable_thinking": False}
    assert row["prompt"] == as_prompt("chat", row["prompt"][0]["content"])
    assert [each["role"] for each in row["prompt"] + row["completion"]] == ["user", "assistant"]


@pytest.mark.parametrize("split", ["train", "warm"])
def test_data_without_solutions_are_refused(folder, split):
    write_jsonl(folder / "two-step.jsonl", [Example("q7", split, "1+1?", "2", "")])
    with pytest.raises(RecordError, match=r"two-step.jsonl: no solution of problem (all|q7) in split 'warm'"):
        taught(folder)


def test_a_share_is_drawn_as_an_evaluation_is(folder):
    """Neither the model's own repetition penalty nor the random state of the training has a part in it."""
    from transformers import GenerationConfig

    known = examples("two-step", "train", 1, 0)[0]
    write_jsonl(folder / "two-step.jsonl", [Example("a", "warm", known.question, known.answer, known.solution)] * 8)
    taught(folder, steps=80)
    model = AutoModelForCausalLM.from_pretrained(folder / "taught")
    tokenizer = AutoTokenizer.from_pretrained(folder / "taught")
    share = warm_start.share_solved(model, tokenizer, [known] * 30, SPEC)
    model.generation_config = GenerationConfig(repetition_penalty=50.0, eos_token_id=tokenizer.eos_token_id)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    assert warm_start.share_solved(model, tokenizer, [known] * 30, SPEC) == share > 0.9
    assert torch.equal(torch.rand(1), expected)


def test_a_chat_prompt_has_its_special_tokens_once(folder):
    from tokenizers import processors

    from mcgrpo.data.toy.models import create

    model, tokenizer = create(
        {"architecture": "qwen3", "hidden_size": 32, "heads": 1, "layers": 1, "tokenizer": "bytes"}
    )
    start = tokenizer.convert_tokens_to_ids("<|im_start|>")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", start)]
    )
    given = []
    model.register_forward_pre_hook(lambda module, args, kwargs: given.append(kwargs["input_ids"]), with_kwargs=True)
    spec = WarmStart(**asdict(SPEC) | {"prompt": "chat", "max_new_tokens": 2})
    warm_start.share_solved(model, tokenizer, [Example("a", "train", "1+1?", "2")], spec)
    assert given[0][0, :2].tolist().count(start) == 1
