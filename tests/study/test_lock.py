"""Pinning. The hub itself cannot be asked here: its client is replaced at the one place where it is called."""

from types import SimpleNamespace

import yaml
from studies import changed

from mcgrpo.study import lock
from mcgrpo.study.strict_yaml import load as read

OLD, NEW = "a" * 40, "b" * 40
STUDY = {
    "models": {"one": {"hub": "org/one"}, "two": {"hub": "org/two", "revision": OLD}, "here": {"folder": "x"}},
    "datasets": {"sums": {"hub": "org/sums", "revision": "main", "task": "gsm8k"}, "toys": {"toy": {}}},
}


def test_everything_from_the_hub_without_a_commit_is_pinned_by_a_file_to_lay_over_it(tmp_path, monkeypatch):
    study, asked = tmp_path / "study.yaml", []
    study.write_text(yaml.safe_dump(STUDY))

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
