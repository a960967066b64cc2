"""Files of a training that were torn, cut or changed by a bit: none blocks its run, and none passes for a result."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from learning_trainings import LONG, assert_ended_alike, run
from training_jobs import job, outcome

from mcgrpo.analyse.collect import finished_outcome
from mcgrpo.files import RecordError, read_json
from mcgrpo.generate.complete import main as generate
from mcgrpo.study.trained import read_record
from mcgrpo.train import attempts
from mcgrpo.train.attempts import COMPLETE, EARLIER, IDENTITY

pytestmark = pytest.mark.slow


def emptied(path):
    path.write_bytes(b"")


def halved(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path):
    """One bit in the middle, size and time as they were."""
    content, times = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size


def without_sums(path):
    path.write_text("{}")


TORN = [
    (COMPLETE, without_sums),
    (COMPLETE, Path.unlink),
    (COMPLETE, emptied),
    (COMPLETE, flipped),
    (EARLIER, flipped),
    ("trainer_state.json", emptied),
    ("optimizer.pt", halved),
    ("model.safetensors", flipped),
    ("scheduler.pt", Path.unlink),
    ("metrics.jsonl", flipped),
]


@pytest.mark.parametrize(("name", "tear"), TORN, ids=[f"{name}-{tear.__name__}" for name, tear in TORN])
def test_a_torn_checkpoint_is_named_and_nothing_is_left_of_its_training(killed, capsys, name, tear):
    checkpoint = killed.checkpoints / "checkpoint-4"
    tear(checkpoint / name)
    assert attempts.begin(killed.home, read_json(killed.home / IDENTITY)) == attempts.Earlier()
    said = capsys.readouterr().out
    assert f"not resuming from {checkpoint}: " in said and name in said
    assert {path.name for path in killed.home.iterdir()} <= {IDENTITY, attempts.LOCK}


def test_an_empty_identity_is_named_and_the_training_starts_again(killed, capsys):
    identity = read_json(killed.home / IDENTITY)
    emptied(killed.home / IDENTITY)
    assert attempts.begin(killed.home, identity) == attempts.Earlier()
    assert f"starting again: {killed.home / IDENTITY}:1: not valid JSON" in capsys.readouterr().out
    assert attempts.last_checkpoint(killed.checkpoints) is None and read_json(killed.home / IDENTITY) == identity


def test_the_checkpoint_before_a_torn_one_is_resumed_from(trainings, killed):
    """As a crash leaves two: the older one goes only when the newer is complete."""
    torn = killed.checkpoints / "checkpoint-6"
    shutil.copytree(killed.checkpoints / "checkpoint-4", torn)
    halved(torn / "optimizer.pt")
    done = run(killed)
    assert f"not resuming from {torn}: {torn / 'optimizer.pt'} has changed" in done.stdout
    assert f"going on from {killed.checkpoints / 'checkpoint-4'}" in done.stdout
    assert_ended_alike(trainings[0], killed)


class TestAFinishedTraining:
    @pytest.fixture
    def whole(self, trainings, inputs, tmp_path):
        for folder in (trainings[0].output, trainings[0].weights):
            shutil.copytree(folder, tmp_path / folder.name)
        return job(inputs, tmp_path, LONG)

    def test_has_the_sums_of_all_it_left(self, whole):
        assert outcome(whole.output)["sums"].keys() == {"weights/SHA256SUMS", *attempts.GROWING}
        check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
        done = subprocess.run(check, cwd=whole.weights, capture_output=True, text=True)
        assert done.returncode == 0 and "model.safetensors: OK" in done.stdout
        finished_outcome(whole.output, read_record(whole.output / "run.json")[0])

    @pytest.mark.parametrize("name", ["metrics.jsonl", "groups.jsonl"])
    def test_with_a_flipped_bit_is_not_collected(self, whole, name):
        path = whole.output / name
        flipped(path)
        with pytest.raises(RecordError, match=rf"{path} has changed"):
            finished_outcome(whole.output, read_record(whole.output / "run.json")[0])

    def test_can_be_read_by_others_as_any_new_file_can(self, whole):
        new = (whole.output / "run.json").stat().st_mode
        assert {path.name for path in whole.weights.iterdir() if path.stat().st_mode != new} == set()

    def test_with_a_flipped_bit_in_its_weights_is_not_evaluated(self, whole, monkeypatch):
        flipped(whole.weights / "model.safetensors")
        settings = {"samples": 1, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 4, "batch_size": 8}
        flags = {"model": whole.weights, "data": whole.data, "prompt": "plain", "seed": 0}
        flags |= {"settings": json.dumps(settings), "output": whole.output / "completions.jsonl"}
        command = ["generate", *(f"--{name}={value}" for name, value in flags.items())]
        monkeypatch.setattr("sys.argv", [*command, f"--sums={whole.weights}/SHA256SUMS"])
        with pytest.raises(SystemExit, match=rf"error: {whole.weights}/model\.safetensors has changed"):
            generate()
        # A model of the user's own may have a list in it for other files: nothing is looked at
        monkeypatch.setattr("sys.argv", command)
        generate()
        assert (whole.output / "completions.jsonl").is_file()


def test_the_sums_of_a_checkpoint_are_on_the_disk_before_it_counts(tmp_path, monkeypatch):
    """A crash of the machine: `complete.json` is moved to its place only after all else has been flushed."""
    flushed = []
    monkeypatch.setattr("mcgrpo.train.attempts.flush", lambda path: flushed.append((path.name, complete.exists())))
    checkpoint = tmp_path / "checkpoints" / "checkpoint-2"
    checkpoint.mkdir(parents=True)
    (checkpoint / "optimizer.pt").write_bytes(b"state")
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    complete = checkpoint / COMPLETE
    attempts.seal_checkpoint(checkpoint, attempts.Earlier(1.0))
    assert sorted(flushed) == [
        ("checkpoint-2", False),
        ("earlier.json", False),
        ("metrics.jsonl", False),
        ("optimizer.pt", False),
    ]
    assert complete.exists()
