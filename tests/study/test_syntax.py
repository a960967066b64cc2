import ast

import pytest

from mcgrpo.study import syntax

FUNCTION = '''
def double(x: "Number") -> int:
    """Return twice x."""
    return x * 2
'''
AS_TEXT = (
    "Module(body=FunctionDef(name='double',"
    "args=arguments(args=arg(arg='x',annotation=Constant(value='Number',),),),"
    "body=Return(value=BinOp(left=Name(id='x',),op=Mult(),right=Constant(value=2,),),),"
    "returns=Name(id='int',),),)"
)


def text(code):
    return syntax.read(ast.parse(code)).text


def test_a_function_is_the_same_text_in_every_version_of_python():
    """Written out, as only one version runs this: 3.12 adds `type_params`, 3.13 drops empty lists from `ast.dump`."""
    assert text(FUNCTION) == AS_TEXT


@pytest.mark.parametrize(
    "other",
    [
        "def double(x: 'Number') -> int: return x * 2",
        "def double(\n    x: 'Number',  # a number\n) -> int:\n\n    return (x * 2)\n",
        "def double(x: 'Number') -> int:\n    'Return 2 x.'\n    return x * 2\n    'A remark.'",
    ],
)
def test_docstrings_comments_and_layout_are_left_out(other):
    assert text(other) == AS_TEXT


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(1)", "f(True)"),
        ("f(1)", "f('1')"),
        ("f('a', 'b')", "f('a,b')"),
        ("f(a)(b)", "f(a, b)"),
        ("a = b = c", "a = b; b = c"),
        ("a = {**b}", "a = {b: b}"),
        ("a: int = 1", "a = 1"),
        ("if a:\n b()\nc()", "if a:\n b()\n c()"),
        ("if a:\n b()\nelse:\n c()", "if a:\n b()\n c()"),
        ("def f(a, /, b): pass", "def f(a, b): pass"),
        ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
        ("from a import b", "from .a import b"),
        ("f'{a!r}'", "f'{a}'"),
        ("async def f(): pass", "def f(): pass"),
    ],
)
def test_code_that_does_something_else_is_another_text(one, other):
    assert text(one) != text(other)


def test_names_and_imports():
    code = syntax.read(ast.parse("import a.b\ndef f(x: 'Kind') -> int:\n    from c import d\n    return d(x).e"))
    assert code.names == {"Kind", "int", "d", "x"}
    assert [ast.unparse(node) for node in code.imports] == ["import a.b", "from c import d"]
