import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo.data.toy import models
from mcgrpo.files import RecordError

ARCHITECTURE = pytest.mark.parametrize("architecture", ["qwen3", "llama"])
SMALL = {"hidden_size": 32, "heads": 1, "layers": 1, "intermediate_size": 32}


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


def test_what_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FileExistsError, match=f"{tmp_path} exists already: remove it first"):
        models.build(spec(), tmp_path)


@ARCHITECTURE
def test_same_spec_same_weights(architecture):
    one, other, reseeded = (models.create(spec(architecture, seed=seed))[0] for seed in (0, 0, 1))
    assert torch.equal(weights(one), weights(other)) and not torch.equal(weights(one), weights(reseeded))


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"hiden_size": 64}, "hiden_size"),
        ({"architecture": "gpt2"}, "architecture"),
        ({"layers": "2"}, "layers"),
        ({"hidden_size": 64, "heads": 4}, "heads"),
    ],
)
def test_bad_specs_name_the_culprit_and_leave_nothing(changes, culprit, tmp_path):
    with pytest.raises((RecordError, ValueError), match=culprit):
        models.build(spec(**changes), tmp_path / "tiny")
    assert not list(tmp_path.iterdir())
