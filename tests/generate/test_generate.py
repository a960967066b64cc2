import hashlib
import json
from functools import partial

import pytest
import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from mcgrpo.data.prompts import as_prompt, render
from mcgrpo.data.toy.examples import examples
from mcgrpo.data.toy.models import create
from mcgrpo.files import read_jsonl, write_jsonl
from mcgrpo.generate.complete import complete, main
from mcgrpo.generate.engines import TransformersEngine, load
from mcgrpo.grade.prompts import system_prompt
from mcgrpo.records import Completion, Example

SETTINGS = {"samples": 2, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 8, "batch_size": 4}
SHAPE = {"architecture": "qwen3", "hidden_size": 64, "layers": 2, "heads": 2, "intermediate_size": 64, "seed": 3}


@pytest.fixture(scope="module")
def words():
    return TransformersEngine(*create(SHAPE))


@pytest.fixture(scope="module")
def chat():
    return TransformersEngine(*create(SHAPE | {"tokenizer": "bytes"}))


@pytest.fixture(scope="module")
def problems():
    """Questions of different lengths, so that batches are padded and rows change places."""
    mixed = examples("three-step", "test", 3, 0) + examples("two-step", "test", 3, 0)
    assert len({len(problem.question) for problem in mixed}) > 3
    return mixed


def run(engine, problems, prompt="plain", seed=0, **changed):
    return list(complete(engine, problems, prompt, SETTINGS | changed, seed))


def without_padding(engine, text, **kwargs):
    """Tokens that transformers itself generates for one text alone."""
    model, tokenizer = engine.model, engine.tokenizer
    inputs = tokenizer(text, return_tensors="pt", add_special_tokens=False)
    return model.generate(**inputs, max_new_tokens=8, **kwargs)[0, inputs["input_ids"].size(1) :].tolist()


def test_rows_are_greedy_first_then_sample_after_sample(words, problems):
    rows = run(words, problems)
    assert [(row.decoding, row.sample, row.id) for row in rows] == [
        (decoding, sample, problem.id)
        for decoding, sample in (("greedy", 0), ("sampled", 0), ("sampled", 1))
        for problem in problems
    ]
    assert [(row.answer, row.solution) for row in rows[:6]] == [(p.answer, p.solution) for p in problems]


def test_greedy_is_that_of_transformers_for_each_prompt_alone(words, problems):
    tokenizer = words.tokenizer
    for row, problem in zip(run(words, problems, samples=0), problems, strict=True):
        expected = without_padding(words, problem.question, do_sample=False)
        stop = tokenizer.eos_token_id
        kept = expected[: expected.index(stop)] if stop in expected else expected
        assert row.completion == tokenizer.decode(kept, skip_special_tokens=True)
        assert row.finish_reason == ("stop" if stop in expected else "length")


def test_samples_differ_by_seed_and_by_sample_and_repeat(words, problems):
    first, again, other = (run(words, problems, seed=seed) for seed in (0, 0, 1))
    texts = [[row.completion for row in rows] for rows in (first, again, other)]
    assert texts[0] == texts[1]
    assert texts[0][:6] == texts[2][:6]
    assert texts[0][6:] != texts[2][6:]
    assert texts[0][6:12] != texts[0][12:]


def test_temperature_and_top_p_reach_the_sampler(words, problems):
    greedy = [row.completion for row in run(words, problems, samples=0)]
    for narrow in ({"temperature": 1e-4}, {"top_p": 1e-4}):
        rows = run(words, problems, **narrow)
        assert [row.completion for row in rows[6:12]] == greedy


def test_finish_reasons(problems):
    """With every token an end, each completion is empty and stopped; with none, each is cut at the limit."""
    model, tokenizer = create(SHAPE)
    for ends, reason in ((list(range(len(tokenizer))), "stop"), (None, "length")):
        model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=tokenizer.pad_token_id)
        rows = run(TransformersEngine(model, tokenizer), problems, samples=0)
        assert {row.finish_reason for row in rows} == {reason}
        assert all((row.completion == "") == (reason == "stop") for row in rows)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_model_whose_weights_are_no_numbers_is_refused(value, problems, tmp_path, monkeypatch):
    """Before any engine has it: greedy, from weights of NaN, every completion would be empty, and none an error."""
    model, tokenizer = create(SHAPE | {"tokenizer": "bytes"})
    model.model.norm.weight.data[3] = value
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "run/seed0")
    write_jsonl(tmp_path / "data.jsonl", problems)
    with pytest.raises(
        SystemExit, match=r"error: .*run/seed0/model\.safetensors: the weight model\.norm\.weight holds NaN or inf"
    ):
        command(monkeypatch, tmp_path / "run/seed0", tmp_path / "data.jsonl", tmp_path / "completions.jsonl")
    assert not (tmp_path / "completions.jsonl").exists()


def test_a_chat_prompt_is_what_the_model_is_given(chat):
    problems = [Example("a", "test", "Zwei plus zwei?", "4"), Example("b", "test", "1+1?", "2")]
    rows = run(chat, problems, "gsm8k", samples=0)
    for row, problem in zip(rows, problems, strict=True):
        text = (
            f"<|im_start|>system\n{system_prompt('gsm8k')}<|im_end|>\n"
            f"<|im_start|>user\n{problem.question}<|im_end|>\n<|im_start|>assistant\n"
        )
        assert row.prompt_sha256 == hashlib.sha256(text.encode()).hexdigest()
        expected = without_padding(chat, text, do_sample=False)
        assert row.completion == chat.tokenizer.decode(expected, skip_special_tokens=True)


def test_special_tokens_are_those_of_training(chat):
    """TRL tokenizes a plain prompt with the tokenizer's special tokens, and rendered messages without more of them."""
    from tokenizers import processors

    model, tokenizer = create(SHAPE | {"tokenizer": "bytes"})
    start = tokenizer.convert_tokens_to_ids("<|im_start|>")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", start)]
    )
    given = []
    model.register_forward_pre_hook(lambda module, args, kwargs: given.append(kwargs["input_ids"]), with_kwargs=True)
    problem = Example("a", "test", "1+1?", "2")
    engine = TransformersEngine(model, tokenizer)
    run(engine, [problem], samples=0)
    assert given[0].tolist() == [tokenizer(["1+1?"])["input_ids"][0]]
    assert given[0][0, 0] == start
    given.clear()
    run(engine, [problem], "gsm8k", samples=0)
    (text,) = render([as_prompt("gsm8k", "1+1?")], tokenizer, {})
    assert given[0].tolist() == tokenizer([text], add_special_tokens=False)["input_ids"]


@pytest.fixture
def model_folder(chat, tmp_path):
    """A model whose folder brings sampling habits of its own, another end, and no padding token, as hub models do."""
    model, tokenizer = create(SHAPE | {"tokenizer": "bytes"})
    model.generation_config = GenerationConfig(
        repetition_penalty=9.0, temperature=0.1, do_sample=True, top_k=2, eos_token_id=[0]
    )
    tokenizer.pad_token = None
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_folder_brings_weights_and_ends_but_no_sampling_habits(model_folder, problems):
    engine = load(model_folder, SETTINGS)
    model, tokenizer = engine.model, engine.tokenizer
    assert model.generation_config.eos_token_id == [0, tokenizer.eos_token_id]
    assert tokenizer.pad_token_id == model.generation_config.pad_token_id is not None
    if not torch.cuda.is_available():
        assert model.dtype == torch.float32
        assert load(model_folder, SETTINGS | {"dtype": "bfloat16"}).model.dtype == torch.bfloat16
        plain, tokenizer = create(SHAPE | {"tokenizer": "bytes"})
        plain.generation_config.eos_token_id = [0, tokenizer.eos_token_id]
        assert run(engine, problems) == run(TransformersEngine(plain, tokenizer), problems)


def test_the_end_of_a_turn_is_no_end_of_a_base_model(tmp_path):
    """As of Qwen2.5-Math-1.5B, whose chat template closes turns otherwise; TRL ends rollouts as the model does."""
    model, tokenizer = create(SHAPE | {"tokenizer": "bytes"})
    tokenizer.eos_token = "<|endoftext|>"
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id)
    engine = TransformersEngine(model, tokenizer)
    assert engine.ends == {tokenizer.eos_token_id} != {tokenizer.convert_tokens_to_ids("<|im_end|>")}


def command(monkeypatch, model, data, output):
    options = {"model": model, "data": data, "prompt": "gsm8k", "settings": json.dumps(SETTINGS), "seed": 5}
    flags = [str(part) for key, value in options.items() for part in (f"--{key}", value)]
    monkeypatch.setattr("sys.argv", ["generate", *flags, "--output", str(output)])
    main()


def test_the_command_completes_the_test_split(model_folder, tmp_path, monkeypatch):
    rows = [Example("a", "train", "0?", "0"), Example("b", "test", "1+1?", "2", "one and one")]
    write_jsonl(tmp_path / "data.jsonl", rows)
    outputs = [tmp_path / name / "sums.jsonl" for name in "xy"]
    for output in outputs:
        command(monkeypatch, model_folder, tmp_path / "data.jsonl", output)
    made = read_jsonl(outputs[0], Completion)
    assert [(row.id, row.sample, row.decoding) for row in made] == [
        ("b", 0, "greedy"),
        ("b", 0, "sampled"),
        ("b", 1, "sampled"),
    ]
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    written = {"sums.jsonl", "sums.jsonl.sha256", "sums.json"}
    assert {path.name for path in outputs[0].parent.iterdir()} == written


def drawn(monkeypatch, capfd, folder, model, **changed):
    """The benchmarks that one command draws, of two."""
    names = ("a", "b")
    given = {"model": [model], "data": [folder / f"{name}.jsonl" for name in names], "prompt": ["plain"], "seed": [5]}
    given |= {"settings": [json.dumps(SETTINGS)] * 2, "code": ["first"]}
    given |= {"output": [folder / f"completions/{name}.jsonl" for name in names]} | changed
    flags = [str(word) for name, words in given.items() for word in (f"--{name}", *words)]
    monkeypatch.setattr("sys.argv", ["generate", *flags])
    capfd.readouterr()
    main()
    said = capfd.readouterr().out
    kept = {name for name in names if f"{name}.jsonl is there already" in said}
    assert said.count("drawing completions") == (len(kept) < 2)
    return {*names} - kept


def test_one_engine_draws_several_benchmarks_and_keeps_what_it_would_draw_again(
    model_folder, tmp_path, monkeypatch, capfd
):
    for name, question in (("a", "1+1?"), ("b", "two and two?")):
        write_jsonl(tmp_path / f"{name}.jsonl", [Example(name, "test", question, "2")])
    draw = partial(drawn, monkeypatch, capfd, tmp_path, model_folder)
    first = tmp_path / "completions/a.jsonl"
    assert draw() == {"a", "b"} and draw() == set()
    before = first.read_bytes()
    first.unlink()
    assert draw() == {"a"} and first.read_bytes() == before
    first.write_bytes(before.replace(b"sampled", b"smapled"))
    assert draw() == {"a"} and first.read_bytes() == before
    (tmp_path / "completions/a.json").unlink()  # killed before it was written
    assert draw() == {"a"}
    shorter = [json.dumps(SETTINGS), json.dumps(SETTINGS | {"max_new_tokens": 2})]
    assert draw(settings=shorter) == {"b"} and draw(settings=shorter) == set() and draw() == {"b"}
    write_jsonl(tmp_path / "b.jsonl", [Example("b", "test", "two and three?", "5")])
    assert draw() == {"b"}
    for change in ({"prompt": ["chat"]}, {"seed": [6]}, {"code": ["second"]}, {"code": [""]}):
        assert draw(**change) == {"a", "b"} == draw()
    model = AutoModelForCausalLM.from_pretrained(model_folder)
    model.model.norm.weight.data[3] = 2.0
    model.save_pretrained(model_folder)
    assert draw() == {"a", "b"}


def test_completions_do_not_depend_on_what_is_drawn_beside_them(model_folder, tmp_path, monkeypatch, capfd):
    for name, question in (("a", "1+1?"), ("b", "two and two?")):
        write_jsonl(tmp_path / f"{name}.jsonl", [Example(name, "test", question, "2")])
    draw = partial(drawn, monkeypatch, capfd, tmp_path, model_folder)
    draw()
    beside = (tmp_path / "completions/b.jsonl").read_bytes()
    alone = {"data": [tmp_path / "b.jsonl"], "settings": [json.dumps(SETTINGS)], "output": [tmp_path / "alone.jsonl"]}
    draw(**alone)
    assert (tmp_path / "alone.jsonl").read_bytes() == beside


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": [json.dumps(SETTINGS)]}, "as many --data as --settings and --output"),
        (
            {"settings": [json.dumps(SETTINGS), json.dumps(SETTINGS | {"dtype": "bfloat16"})]},
            "error: --settings: backend, dtype and vllm_* are of the engine, the same for all benchmarks",
        ),
    ],
)
def test_what_one_engine_cannot_draw_is_refused(change, message, model_folder, tmp_path, monkeypatch, capfd):
    for name in "ab":
        write_jsonl(tmp_path / f"{name}.jsonl", [Example(name, "test", "1+1?", "2")])
    with pytest.raises(SystemExit) as refused:
        drawn(monkeypatch, capfd, tmp_path, model_folder, **change)
    assert message in f"{refused.value} {capfd.readouterr().err}"


def test_the_command_needs_a_test_split(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "data.jsonl", [Example("a", "train", "0?", "0")])
    with pytest.raises(SystemExit, match=r"error: .*data\.jsonl: no example of split 'test'"):
        command(monkeypatch, tmp_path, tmp_path / "data.jsonl", tmp_path / "out.jsonl")
