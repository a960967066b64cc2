"""Pinning. The hub itself cannot be asked here: its client is replaced at the one place where it is called."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml
from studies import changed

from mcgrpo.study import lock
from mcgrpo.study.strict_yaml import load as read

OLD, NEW = "a" * 40, "b" * 40
STUDY = {
    "models": {"one": {"hub": "org/one"}, "two": {"hub": "org/two", "revision": OLD}, "here": {"folder": "x"}},
    "datasets": {"sums": {"hub": "org/sums", "revision": "main", "task": "gsm8k"}, "toys": {"toy": {}}},
}


@pytest.fixture
def study(tmp_path):
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY))
    return tmp_path / "study.yaml"


def test_everything_from_the_hub_without_a_commit_is_pinned_by_a_file_to_lay_over_it(study, monkeypatch):
    asked = []

    def info(name, revision):
        asked.append((name, revision))
        return SimpleNamespace(sha=NEW)

    monkeypatch.setattr("huggingface_hub.HfApi", lambda: SimpleNamespace(model_info=info, dataset_info=info))
    monkeypatch.setattr("sys.argv", ["lock", str(study)])
    lock.main()
    assert asked == [("org/one", None), ("org/sums", "main")]
    locked = changed(STUDY, read(study.with_suffix(".lock.yaml")))
    assert [locked["models"][name]["revision"] for name in ("one", "two")] == [NEW, OLD]
    assert locked["datasets"]["sums"] == {"hub": "org/sums", "revision": NEW, "task": "gsm8k"}
    assert (locked["models"]["here"], locked["datasets"]["toys"]) == ({"folder": "x"}, {"toy": {}})


@pytest.mark.slow
def test_without_the_hub_nothing_is_written(study):
    """The real client, without a network."""
    done = subprocess.run([sys.executable, "-m", "mcgrpo.study.lock", str(study)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: org/one: ") and done.stderr.count("\n") == 1
    assert not study.with_suffix(".lock.yaml").exists()
