import random

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo.data.toy import models, task, warm_start
from mcgrpo.data.toy.demonstrator import Habits, demonstrate
from mcgrpo.data.toy.tokenizer import word_tokenizer
from mcgrpo.data.toy.warm_start import IGNORED, encode
from mcgrpo.files import RecordError

ARCHITECTURE = pytest.mark.parametrize("architecture", ["qwen3", "llama"])
SMALL = {"hidden_size": 32, "heads": 1, "layers": 1, "intermediate_size": 32}
WARM = {"steps": 3, "batch_size": 4, "learning_rate": 1e-3, "problems": 50}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def spec(architecture="qwen3", **changes):
    return {"architecture": architecture, **SMALL, **changes}


def weights(model):
    return torch.cat([parameter.flatten() for parameter in model.parameters()])


@ARCHITECTURE
@pytest.mark.parametrize("tokenizer", ["word", "bytes"])
def test_folders_load_and_generate(architecture, tokenizer, tmp_path):
    folder = tmp_path / "models" / "tiny"
    models.build(spec(architecture, tokenizer=tokenizer), folder)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["tiny"]
    assert load_file(folder / "model.safetensors")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    words = AutoTokenizer.from_pretrained(folder)
    assert model.config.model_type == architecture
    assert model.config.vocab_size == len(words)
    generated = model.generate(
        **words(["Sam has 5 cards.", "How many?"], padding=True, return_tensors="pt"), max_new_tokens=5
    )
    assert generated.shape[0] == 2


@pytest.mark.parametrize("tokenizer", ["word", "bytes"])
def test_generation_stops_at_the_end_of_sequence(tokenizer, tmp_path):
    models.build(spec(tokenizer=tokenizer), tmp_path / "tiny")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "tiny", dtype=torch.float32)
    words = AutoTokenizer.from_pretrained(tmp_path / "tiny")
    prompt = words("Sam has 5 cards.", return_tensors="pt")
    ended = model.generate(**prompt, max_new_tokens=6, sequence_bias={(words.eos_token_id,): 1e4})
    assert ended[0, prompt["input_ids"].shape[1] :].tolist() == [words.eos_token_id]
    assert model.generation_config.pad_token_id == words.pad_token_id


@ARCHITECTURE
def test_same_spec_same_weights(architecture):
    one, other = (models.create(spec(architecture, warm_start=WARM))[0] for _ in range(2))
    assert torch.equal(weights(one), weights(other))
    reseeded, _ = models.create(spec(architecture, warm_start=WARM, seed=1))
    assert not torch.equal(weights(one), weights(reseeded))


def test_building_leaves_the_callers_random_state_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    models.create(spec(seed=7))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
@ARCHITECTURE
def test_a_warm_start_learns_from_its_demonstrations(architecture):
    rng = random.Random(0)
    unseen = task.problems("two-step", "test", 64, 0)
    losses = []
    for steps in (1, 60):
        warm = {**WARM, "steps": steps, "batch_size": 16, "learning_rate": 1e-2, "warmup_steps": 5}
        model, words = models.create(spec(architecture, warm_start=warm))
        batch = encode(words, [(problem.question, demonstrate(problem, rng, Habits())) for problem in unseen])
        with torch.no_grad():
            losses.append(model(**batch).loss.item())
    assert losses[1] < losses[0] / 2


def test_a_warm_start_sees_its_own_split_only(monkeypatch):
    seen = []
    monkeypatch.setattr(
        warm_start, "demonstrate", lambda problem, *rest: seen.append(problem) or demonstrate(problem, *rest)
    )
    models.create(spec(warm_start={**WARM, "batch_size": 32}))
    assert {len(problem.operators) for problem in seen} == {2, 3}
    own = [problem for kind in task.KINDS for problem in task.problems(kind, "warm", WARM["problems"], 0)]
    assert set(seen) <= set(own)


class TestUntilSolved:
    def test_a_warm_start_ends_at_the_first_check_that_finds_the_share(self, capsys):
        models.create(spec(warm_start={**WARM, "steps": 500, "until_solved": 0.0}))
        assert capsys.readouterr().out.count("of held-out problems solved after 20 steps\n") == 1

    def test_one_that_does_not_get_there_is_an_error(self, tmp_path):
        with pytest.raises(ValueError, match=r"until_solved 0\.9: 0\.000 of held-out problems .* after 3 steps"):
            models.build(spec(warm_start={**WARM, "until_solved": 0.9}), tmp_path / "tiny")
        assert not list(tmp_path.iterdir())

    def test_the_share_is_that_of_accurate_samples(self):
        """Of a model that knows the answer to one of two problems by heart."""
        known, other = task.problems("two-step", "train", 2, 0)
        model, words = models.create(spec())
        pair = (known.question, demonstrate(known, random.Random(0), Habits(bare=1, slip_high=0)))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(60):
            model(**encode(words, [pair])).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.manual_seed(0)
        assert warm_start.share_solved(model, words, [known] * 30 + [other] * 10) == pytest.approx(0.75, abs=0.05)


def test_only_completions_are_labelled():
    words = word_tokenizer()
    batch = encode(words, [("Sam has 5 cards.", "5+4=9"), ("Sam has 15.", "9")])
    assert {tensor.shape for tensor in batch.values()} == {batch["input_ids"].shape}
    labelled = [row[row != IGNORED] for row in batch["labels"]]
    assert [words.decode(row) for row in labelled] == ["5+4=9<eos>", "9<eos>"]
    assert batch["attention_mask"].sum(1).tolist() == [12, 7]


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"hiden_size": 64}, "hiden_size"),
        ({"architecture": "gpt2"}, "architecture"),
        ({"layers": "2"}, "layers"),
        ({"layers": 0}, "layers"),
        ({"warm_start": {**WARM, "step": 1}}, "step"),
        ({"warm_start": {"steps": 1}}, "batch_size"),
        ({"warm_start": {**WARM, "batch_size": 0}}, "batch_size"),
        ({"warm_start": {**WARM, "three_step_share": 1.5}}, "three_step_share"),
        ({"warm_start": {**WARM, "slip_high": 1.5}}, "warm_start.slip_high 1.5 is not within 0..1"),
        ({"warm_start": {**WARM, "slip_low": 0.9}}, "warm_start.slip_low 0.9 is above slip_high 0.8"),
        ({"warm_start": {**WARM, "until_solved": 1.5}}, "warm_start.until_solved 1.5 is not within 0..1"),
        ({"warm_start": WARM, "tokenizer": "bytes"}, "tokenizer"),
        ({"hidden_size": 64, "heads": 4}, "heads"),
    ],
)
def test_bad_specs_name_the_culprit_and_leave_nothing(changes, culprit, tmp_path):
    with pytest.raises((RecordError, ValueError), match=culprit):
        models.build(spec(**changes), tmp_path / "tiny")
    assert not list(tmp_path.iterdir())


def test_a_full_folder_is_not_overwritten(tmp_path):
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        models.build(spec(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="disk"), models._whole(tmp_path / "tiny") as folder:
        (folder / "half").touch()
        raise RuntimeError("disk")
    assert not list(tmp_path.iterdir())
