"""Each target of the Makefile and each script of bench/ and workflow/scripts can be run, and a test or CI runs it."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
TARGETS = re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
SCRIPTS = [path for path in (ROOT / "bench").rglob("*.py") if "__main__" in path.read_text()]
SCRIPTS += (ROOT / "workflow/scripts").glob("*.py")


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_target_calls_is_there(target):
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    called = re.findall(r"python3? (?:-m )?((?:bench|mcgrpo|workflow)[\w./]+)", done.stdout)
    called += re.findall(r"config/[\w./-]+\.yaml", done.stdout)
    assert [name for name in called if not ((ROOT / name).is_file() if "/" in name else find_spec(name))] == []


def test_a_test_or_ci_runs_every_script():
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    ran = "\n".join([*texts, (ROOT / ".ci/run").read_text()])
    names = {path: path.parent.name if path.stem == "__main__" else path.stem for path in SCRIPTS}
    by_name = r"bench/{0}\.py|^from bench(?:\.\w+)* import .*\b{0}\b|from bench\.{0}\b|^import {0}\b"
    assert [path for path, name in names.items() if not re.search(by_name.format(name), ran, re.MULTILINE)] == []
