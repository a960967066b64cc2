"""The site of the documentation, built as `make site` does; skipped before `make site`."""

import re
import subprocess
from pathlib import Path

import pytest
from test_public_names import NAMES

ROOT = Path(__file__).parents[2]
SPHINX = ROOT / ".venv-site/bin/sphinx-build"
PAGES = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "config/README.md", ROOT / "CHANGELOG.md"]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SPHINX.is_file(), reason="`make site` has not been run")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [SPHINX, "-W", "--keep-going", "-q", "-c", "docs", ".", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built_without_a_warning(site):
    assert [path for path in PAGES if not (site / path.relative_to(ROOT).with_suffix(".html")).is_file()] == []


def test_the_api_reference_has_every_public_name(site):
    text = (site / "docs/drop-in.html").read_text(encoding="utf-8")
    shown = set(re.findall(r'class="sig-name descname"><span class="pre">(\w+)<', text))
    assert {name.partition(":")[2] for name in NAMES} - shown == set()
