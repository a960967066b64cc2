"""A piece of code as one text that is the same in every version of Python.

`ast.dump` writes other fields in each version (`type_params`, empty lists): a study that is carried on under another
Python would train everything again.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

SKIPPED = frozenset({"ctx", "type_comment", "kind"})
"""Fields that follow from where a node stands, or that change nothing."""


@dataclass
class Code:
    """What a syntax tree says.

    `text` has its nodes and their fields, without docstrings, comments and layout. `names` are those that it uses, also
    in quotes (annotations); `imports` its import statements.
    """

    text: str = ""
    names: set[str] = field(default_factory=set)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)


def read(tree: ast.AST) -> Code:
    """Read a syntax tree once, from its root."""
    code, parts = Code(), []
    _read(tree, code, parts.append)
    code.text = "".join(parts)
    return code


def _read(node: ast.AST, code: Code, write: Callable[[str], None]) -> None:
    if isinstance(node, ast.Name):
        code.names.add(node.id)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        code.names.add(node.value)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        code.imports.append(node)
    write(type(node).__name__ + "(")
    for name in node._fields:
        value = getattr(node, name, None)
        if value is None or value == [] or name in SKIPPED:
            continue
        write(name + "=")
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, ast.AST):
                write(repr(part) + ",")
            elif not is_text(part):
                _read(part, code, write)
                write(",")
    write(")")


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a bare string: a docstring, or one that documents a constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
