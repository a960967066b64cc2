"""YAML (or JSON) files of plain data, with an error that names the file and the line.

PyYAML alone takes the last of two equal keys, and expands nested aliases without a limit.
Read here, nothing in a file runs, so that archives can be verified. Snakemake reads a study file by itself and runs the
templates of one with `__use_yte__: true`: a study file is to be trusted as a Snakefile is.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 500_000
MAX_NODES = 200_000
"""Keys and values of one file, those of an alias counted wherever it stands."""


class YamlError(ValueError):
    """A file that holds no plain data; the message names the file and, where there is one, the line."""


class _Loader(yaml.SafeLoader):
    """Refuses two equal keys in one mapping."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Called before a mapping is made, and before `<<` puts keys of others into it, which may be equal."""
        first: dict[tuple[str, str], yaml.Node] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                earlier = first.setdefault((key.tag, key.value), key)
                if earlier is not key:
                    problem = f"the key {key.value!r} is there already, in line {earlier.start_mark.line + 1}"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        super().flatten_mapping(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Errors of invalid values (month 13, 5000 digits) also name the line."""
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from None


def load(path: str | Path) -> dict[Any, Any]:
    """Read a file of keys with values.

    Raises:
        YamlError: for a file that cannot be read, is no YAML, has two equal keys in one mapping, is larger than
            `MAX_BYTES`, or stands for more than `MAX_NODES` keys and values.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise YamlError(
            f"{path}: {'no such file' if isinstance(error, FileNotFoundError) else error.strerror}"
        ) from None
    if len(content) > MAX_BYTES:
        raise YamlError(f"{path}: larger than {MAX_BYTES:,} bytes")
    return loads(content, str(path))


def loads(content: str | bytes, name: str) -> dict[Any, Any]:
    """As `load`, of a text; errors call it `name`."""
    try:
        return _json(content, name)
    except YamlError:
        raise
    except (ValueError, RecursionError):
        return _yaml(content, name)


def _json(content: str | bytes, name: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1:
                raise YamlError(f"{name}: the key {key!r} is there {times} times in one mapping")
        return dict(pairs)

    value = json.loads(content, object_pairs_hook=unique)
    if not isinstance(value, dict):
        raise YamlError(f"{name}: holds no keys with values")
    return value


def _yaml(content: str | bytes, name: str) -> dict[Any, Any]:
    try:
        loader = _Loader(content)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise YamlError(f"{name}: holds no keys with values")
        _count(node, {}, name)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        said = " ".join(part for part in (error.context and f"{error.context}:", error.problem) if part)
        raise YamlError(f"{name}{line}: {said}") from None
    except RecursionError:
        raise YamlError(f"{name}: nested too deep") from None
    except (yaml.YAMLError, ValueError) as error:
        raise error if isinstance(error, YamlError) else YamlError(f"{name}: {' '.join(str(error).split())}") from None


def _count(node: yaml.Node, counts: dict[int, int], name: str) -> int:
    """The number of keys and values that a node stands for; 0 in `counts` marks one that is being counted."""
    if (known := counts.get(id(node))) is not None:
        if not known:
            raise YamlError(f"{name}, line {node.start_mark.line + 1}: stands for itself")
        return known
    counts[id(node)] = 0
    inside: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        inside = node.value
    elif isinstance(node, yaml.MappingNode):
        inside = [each for pair in node.value for each in pair]
    total = 1 + sum(_count(each, counts, name) for each in inside)
    if total > MAX_NODES:
        line = node.start_mark.line + 1
        raise YamlError(f"{name}, line {line}: stands for more than {MAX_NODES:,} keys and values")
    counts[id(node)] = total
    return total
