from pathlib import Path

import pytest
import yaml

from mcgrpo.study.settings import StudyError
from mcgrpo.study.strict_yaml import load

CONFIG = Path(__file__).parents[2] / "config"


def loaded(folder, text):
    (folder / "f.yaml").write_text(text)
    return load(folder / "f.yaml")


@pytest.mark.parametrize("path", sorted(CONFIG.glob("*.yaml")), ids=lambda path: path.name)
def test_what_is_right_is_read_as_by_pyyaml(path):
    assert load(path) == yaml.safe_load(path.read_text())


def test_keys_that_a_merge_brings_may_be_overridden(tmp_path):
    assert loaded(tmp_path, "a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  x: 3\n")["b"] == {"x": 3, "y": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb:\n  x: 1\n  y: 2\n  x: 3\n", "f.yaml, line 5: the key 'x' is there already, in line 3"),
        ('{\n"a": 1,\n"a": 2}', "f.yaml, line 3: the key 'a' is there already, in line 2"),
        ("a: 1\nb: [1, 2\nc: 3\n", "f.yaml, line 3: while parsing a flow sequence: expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", "f.yaml, line 2: while scanning for the next token: found character '\\t'"),
        ("a: !!python/object/apply:os.system [id]\n", "f.yaml, line 1: could not determine a constructor"),
        ("a: *b\n", "f.yaml, line 1: found undefined alias"),
        ("a: 2024-13-45\n", "f.yaml: month must be in 1..12"),
        ("", "f.yaml: holds no keys with values"),
        ("a: 1\n---\nb: 2\n", "f.yaml, line 2: expected a single document in the stream: but found another document"),
        ("a: \x01\n", "f.yaml: unacceptable character"),
    ],
)
def test_what_is_wrong_is_an_error_with_its_line(tmp_path, text, message):
    with pytest.raises(StudyError) as error:
        loaded(tmp_path, text)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_files_that_cannot_be_read_are_errors_with_their_name(tmp_path):
    with pytest.raises(StudyError, match=r"none\.yaml: no such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(StudyError, match="Is a directory"):
        load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: caf\xe9\n")
    with pytest.raises(StudyError, match=r"latin\.yaml: unacceptable character"):
        load(tmp_path / "latin.yaml")
