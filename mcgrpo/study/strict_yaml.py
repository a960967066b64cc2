"""YAML files of plain data, with an error that names the file and the line: PyYAML alone takes the last of equal keys.

Snakemake reads a study file by itself and runs the templates of one with `__use_yte__: true`: a study file is to be
trusted as a Snakefile is.
"""

from pathlib import Path
from typing import Any

import yaml

from mcgrpo.study.settings import StudyError


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


def load(path: str | Path) -> dict[Any, Any]:
    """Read a file of keys with values.

    Raises:
        StudyError: for a file that cannot be read, is no YAML, or has two equal keys in one mapping.
    """
    try:
        content = yaml.load(Path(path).read_bytes(), _Loader)
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        said = " ".join(part for part in (error.context and f"{error.context}:", error.problem) if part)
        raise StudyError(f"{path}{line}: {said}") from None
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise StudyError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise StudyError(f"{path}: holds no keys with values")
    return content
