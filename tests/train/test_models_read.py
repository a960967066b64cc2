"""A model is checked where it is read: by `generate`, `warm_start` and `train`, whatever it is."""

import json
import os
import shutil
from dataclasses import replace

import pytest
from training_jobs import job

from mcgrpo.data.local_model import main as local_model
from mcgrpo.data.warm_start import main as warm_start
from mcgrpo.files import RecordError
from mcgrpo.generate.complete import main as generate
from mcgrpo.sums import model_sum, write_sums
from mcgrpo.train.job import run_job


@pytest.fixture
def listed(inputs, tmp_path):
    """A model with the list of its files, in one of which a bit is then turned, with its time left as it was."""
    folder = shutil.copytree(inputs / "model", tmp_path / "model")
    write_sums(folder)
    file = folder / "model.safetensors"
    before, data = file.stat(), bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return folder


def commands(listed, data, output):
    sums = [f"--model={listed}", f"--sums={listed}.sha256", f"--data={data}", f"--output={output}"]
    settings = {"samples": 1, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 4, "batch_size": 8}
    spec = {"datasets": ["sums"], "steps": 1, "batch_size": 2, "learning_rate": 0.1, "prompt": "plain", "task": "gsm8k"}
    return {
        generate: [*sums, "--prompt=plain", "--seed=0", f"--settings={json.dumps(settings)}"],
        warm_start: [*sums, f"--spec={json.dumps(spec)}"],
    }


@pytest.mark.parametrize("command", [generate, warm_start])
def test_changed_weights_are_refused_by_name(listed, inputs, tmp_path, monkeypatch, command):
    data = job(inputs, tmp_path).data
    monkeypatch.setattr("sys.argv", ["job", *commands(listed, data, tmp_path / "out")[command]])
    with pytest.raises(SystemExit, match=rf"error: {listed}/model\.safetensors has changed since {listed}\.sha256"):
        command()
    assert not (tmp_path / "out").exists()


def test_a_training_does_not_begin_with_them(listed, inputs, tmp_path):
    made = replace(job(inputs, tmp_path / "job"), model=listed, sums=listed.with_name("model.sha256"))
    with pytest.raises(RecordError, match=r"model\.safetensors has changed since"):
        run_job(made)
    assert not made.weights.exists() and not (made.home / "run.json").exists()


def test_a_file_that_is_gone_or_new_is_named_too(listed):
    sums = listed.with_name("model.sha256")
    write_sums(listed)
    (listed / "adapter.safetensors").write_bytes(b"1")
    with pytest.raises(RecordError, match=r"adapter\.safetensors has changed"):
        model_sum(listed, sums)
    (listed / "adapter.safetensors").unlink()
    (listed / ".snakemake_timestamp").touch()  # as Snakemake does, once the list is written
    (listed / ".git").mkdir()
    (listed / ".git/index").write_bytes(b"of another time")
    whole = model_sum(listed, sums)
    assert whole == model_sum(listed)
    (listed / "config.json").unlink()
    with pytest.raises(RecordError, match=r"config\.json has changed"):
        model_sum(listed, sums)


def test_a_model_that_is_used_where_it_lies_has_a_list_elsewhere(listed, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["job", f"--folder={listed}", f"--output={tmp_path}/lists/own.local.sha256"])
    local_model()
    assert model_sum(listed, tmp_path / "lists/own.local.sha256") == model_sum(listed)
