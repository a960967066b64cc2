"""What is known of a model before a job loads it."""

import json
from pathlib import Path

import pytest

from mcgrpo.study.model_config import model_config
from mcgrpo.study.paths import SOURCE, StudyFiles
from mcgrpo.study.read import read
from mcgrpo.study.settings import StudyError

HUB = {"hub": "org/name"}


def study(**spec):
    return {"study": "s", "models": {"m": spec}}


def config_file(folder, **fields):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(fields))


def test_a_models_own_file_is_read_before_what_the_study_states(tmp_path):
    config_file(tmp_path / "m", max_position_embeddings=4096, hidden_size=64, num_attention_heads=2)
    known = model_config(study(folder=str(tmp_path / "m"), config={"max_position_embeddings": 4096}), "m")
    assert known == {
        "max_position_embeddings": 4096, "hidden_size": 64, "num_attention_heads": 2,
        "num_key_value_heads": 2, "head_dim": 32,
    }  # fmt: skip


def test_without_the_file_it_is_what_the_study_states():
    assert model_config(study(**HUB, config={"vocab_size": 7}), "m") == {"vocab_size": 7}
    assert model_config(study(**HUB), "m") == {}


def test_what_differs_is_named_with_both_values(tmp_path):
    config_file(tmp_path / "m", max_position_embeddings=4096)
    with pytest.raises(StudyError, match=r"models\.m\.config\.max_position_embeddings: .* 8192, .* has 4096: "):
        model_config(study(folder=str(tmp_path / "m"), config={"max_position_embeddings": 8192}), "m")


def test_a_file_that_cannot_be_read_is_named_with_the_model(tmp_path):
    config_file(tmp_path / "m")
    (tmp_path / "m/config.json").write_text("{")
    with pytest.raises(StudyError, match=r"models\.m: .*config\.json"):
        model_config(study(folder=str(tmp_path / "m")), "m")


def test_a_config_of_several_parts_is_that_of_its_text(tmp_path):
    config_file(tmp_path / "m", vision_config={"hidden_size": 1}, text_config={"hidden_size": 64})
    assert model_config(study(folder=str(tmp_path / "m")), "m") == {"hidden_size": 64}


def test_a_download_of_another_repository_does_not_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = StudyFiles("s").model("m")
    config_file(folder, vocab_size=7)
    Path(folder / SOURCE).write_text(json.dumps({"hub": "org/name", "commit": "0"}))
    assert model_config(study(**HUB), "m") == {"vocab_size": 7}
    assert model_config(study(hub="org/other"), "m") == {}
    assert model_config(study(**HUB, revision="main"), "m") == {}


def test_the_papers_models_are_known_before_they_are_downloaded():
    config = read([Path(__file__).parents[2] / "config/config.yaml"])
    known = {name: model_config(config, name) for name in config["models"]}
    assert {name: each["max_position_embeddings"] for name, each in known.items()} == {
        "qwen3-1.7b": 40960, "llama-3.2-3b": 131072, "qwen2.5-math-1.5b": 4096, "qwen3-4b": 262144, "qwen2.5-7b": 32768,
    }  # fmt: skip
    assert {each["head_dim"] for each in known.values()} == {128}
