import json
from pathlib import Path

import pytest
import yaml

from mcgrpo.study import strict_yaml
from mcgrpo.study.strict_yaml import YamlError, load, loads

CONFIG = Path(__file__).parents[2] / "config"
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(12)
)


@pytest.mark.parametrize("path", sorted(CONFIG.glob("*.yaml")), ids=lambda path: path.name)
def test_what_is_right_is_read_as_by_pyyaml(path):
    assert load(path) == yaml.safe_load(path.read_text())


def test_json_is_read_with_tabs_and_without_a_space_behind_a_colon():
    content = {"study": "a", "nested": {"list": [1, 2e-4, None, True, "text"]}}
    assert loads(json.dumps(content, indent="\t"), "a.json") == content
    assert loads(json.dumps(content, separators=(",", ":")), "a.json") == content


def test_keys_that_a_merge_brings_may_be_overridden():
    assert loads("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  x: 3\n", "a.yaml")["b"] == {"x": 3, "y": 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb:\n  x: 1\n  y: 2\n  x: 3\n", "f.yaml, line 5: the key 'x' is there already, in line 3"),
        ('{\n"a": 1,\n"a": 2}', "f.yaml: the key 'a' is there 2 times in one mapping"),
        ("a: 1\nb: [1, 2\nc: 3\n", "f.yaml, line 3: while parsing a flow sequence: expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", "f.yaml, line 2: while scanning for the next token: found character '\\t'"),
        ("a: !!python/object/apply:os.system [id]\n", "f.yaml, line 1: could not determine a constructor"),
        ("a: *b\n", "f.yaml, line 1: found undefined alias"),
        ("a: &a [*a]\n", "f.yaml, line 1: stands for itself"),
        (LAUGHS, "stands for more than 200,000 keys and values"),
        ("a: " + "[" * 2000, "f.yaml: nested too deep"),
        ("a: 2024-13-45\n", "f.yaml, line 1: month must be in 1..12"),
        ("a: 1\nb: " + "1" * 5000 + "\n", "f.yaml, line 2: Exceeds the limit"),
        ("", "f.yaml: holds no keys with values"),
        ("a: 1\n---\nb: 2\n", "f.yaml, line 2: expected a single document in the stream: but found another document"),
        ("? [a]\n: 1\n", "f.yaml, line 1: while constructing a mapping: found unhashable key"),
        ("a: \x01\n", "f.yaml: unacceptable character"),
    ],
)
def test_what_is_wrong_is_an_error_with_its_line(text, message):
    with pytest.raises(YamlError) as error:
        loads(text, "f.yaml")
    assert message in str(error.value) and "\n" not in str(error.value)


def test_files_that_cannot_be_read_are_errors_with_their_name(tmp_path):
    with pytest.raises(YamlError, match=r"none\.yaml: no such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(YamlError, match="Is a directory"):
        load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: caf\xe9\n")
    with pytest.raises(YamlError, match=r"latin\.yaml: unacceptable character"):
        load(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_text("a: " + "x" * strict_yaml.MAX_BYTES)
    with pytest.raises(YamlError, match="larger than"):
        load(tmp_path / "large.yaml")
