"""The suite ends, also in the background of a script, whatever a test waits for."""

import ast
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
WAITS = ("wait", "communicate", "join", "readline")


def test_what_is_started_while_tests_are_imported_heeds_ctrl_c_in_the_background_of_a_script():
    """A shell without job control has what it starts with `&` ignore SIGINT, as `trap '' INT` does."""
    said = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    code = f"import conftest, subprocess, sys; subprocess.run([sys.executable, '-c', {said!r}], timeout=60)"
    script = 'trap "" INT; "$@" & wait'
    done = subprocess.run(["sh", "-c", script, "sh", sys.executable, "-c", code], cwd=TESTS, capture_output=True,
                          text=True, timeout=300)  # fmt: skip
    assert done.stdout == "True\n", done.stderr


def test_every_test_has_a_limit(pytestconfig):
    assert pytestconfig.pluginmanager.hasplugin("timeout") and 0 < float(pytestconfig.getini("timeout")) <= 1800


def test_nothing_waits_for_a_process_without_a_limit():
    """`str.join` and `queue.join` have arguments or are not used. `subprocess.run` ends with a test's own limit."""
    endless = []
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WAITS:
                has_limit = node.args or any(keyword.arg == "timeout" for keyword in node.keywords)
                if not has_limit and (path.name, node.func.attr) != ("pretend_machine.py", "readline"):
                    endless.append(f"{path.relative_to(TESTS)}:{node.lineno}")
    assert endless == []
