"""Pinning. The hub itself cannot be asked here: its client is replaced at the one place where it is called."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml
from studies import ROOT, snakemake

from mcgrpo.study import lock
from mcgrpo.study.check import StudyError

OLD, NEW = "a" * 40, "b" * 40
STUDY = {
    "models": {"one": {"hub": "org/one"}, "two": {"hub": "org/two", "revision": OLD}, "here": {"folder": "x"}},
    "datasets": {"sums": {"hub": "org/sums", "revision": "main", "task": "gsm8k"}, "toys": {"toy": {}}},
}


SUMS = {"hub": "org/sums", "revision": "main", "commit": NEW}
LOCKED = {"models": {"one": {"hub": "org/one", "commit": NEW}}, "datasets": {"sums": SUMS}}


class Hub:
    """`HfApi` as far as it is asked: the commit of every revision is NEW."""

    def __init__(self):
        self.asked = []

    def model_info(self, name, revision):
        self.asked.append((name, revision))
        return SimpleNamespace(sha=NEW)

    dataset_info = model_info


@pytest.fixture
def hub(monkeypatch):
    hub = Hub()
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: hub)
    return hub


@pytest.fixture
def study(tmp_path):
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY))
    return tmp_path / "study.yaml"


def command(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["lock", *map(str, arguments)])
    lock.main()


def test_everything_from_the_hub_without_a_commit_is_pinned(hub, study, monkeypatch):
    command(monkeypatch, study)
    assert hub.asked == [("org/one", None), ("org/sums", "main")]
    assert lock.read_lock(lock.lock_file(study)) == LOCKED


def test_the_study_file_wins_over_its_lock():
    config = yaml.safe_load(yaml.safe_dump(STUDY))
    two = {"hub": "org/two", "revision": OLD, "commit": NEW}
    lock.pin(config, {**LOCKED, "models": {**LOCKED["models"], "two": two}})
    assert config["models"]["one"]["revision"] == NEW
    assert config["models"]["two"]["revision"] == OLD
    assert config["datasets"]["sums"]["revision"] == NEW
    assert config["datasets"]["toys"] == {"toy": {}}


@pytest.mark.parametrize("change", [{"hub": "org/other"}, {"revision": "v2"}], ids=["hub", "revision"])
def test_the_commit_of_another_repository_or_revision_is_not_taken(change):
    config = yaml.safe_load(yaml.safe_dump(STUDY))
    config["models"]["one"] |= change
    config["datasets"]["sums"] |= change
    lock.pin(config, LOCKED)
    assert NEW not in (config["models"]["one"].get("revision"), config["datasets"]["sums"]["revision"])


@pytest.mark.slow
def test_without_the_hub_nothing_is_written(study):
    """The real client, without a network."""
    done = subprocess.run([sys.executable, "-m", "mcgrpo.study.lock", str(study)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the hub did not answer, nothing was written: org/one: ")
    assert done.stderr.count("\n") == 1
    assert not lock.lock_file(study).exists()


@pytest.mark.slow
def test_the_lock_of_the_study_on_top_wins_and_reaches_the_jobs(tmp_path):
    """Its commit is in the parameters of the rule that fetches a model."""
    base, top = tmp_path / "smoke.yaml", tmp_path / "top.yaml"
    config = yaml.safe_load((ROOT / "config/smoke.yaml").read_text())
    config["datasets"]["gsm8k"]["folder"] = str(ROOT / "tests/data/gsm8k")
    config["models"]["tiny-random"] = {"hub": "org/tiny"}
    base.write_text(yaml.safe_dump(config))
    top.write_text("models: {tiny-random: {hub: org/other}}")
    for study, hub, commit in ((base, "org/tiny", OLD), (top, "org/other", NEW)):
        locked = {"models": {"tiny-random": {"hub": hub, "commit": commit}}}
        lock.lock_file(study).write_text(yaml.safe_dump(locked))
    where = ["--snakefile", ROOT / "Snakefile", "--directory", tmp_path]
    done = snakemake(*where, "--dry-run", "--printshellcmds", "--configfile", base, top)
    assert done.returncode == 0, done.stderr
    assert f'"hub": "org/other", "revision": "{NEW}"' in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("models: {one: abc}", "study.lock.yaml: models.one: 'abc' is not a hub and a commit of 40 hexadecimal digits"),
        ("models: [one]", "study.lock.yaml: models.: ['one'] is not a hub and a commit"),
        ("[one]", "study.lock.yaml: holds no keys with values"),
        ("models: {", "study.lock.yaml, line 1: while parsing a flow node"),
    ],
)
def test_a_broken_lock_file_is_named(study, text, culprit):
    lock.lock_file(study).write_text(text)
    with pytest.raises(StudyError) as raised:
        lock.read_lock(lock.lock_file(study))
    assert culprit in str(raised.value) and "\n" not in str(raised.value)
