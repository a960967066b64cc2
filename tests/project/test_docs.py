"""Every page of docs/ does what it says: its Python blocks run, in order, in an empty folder."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: [^>\n]+ -->\n\Z")
FILE = re.compile(r"# (\w+\.py)\n")


def blocks(text):
    """(line of its first line, code) of every Python block that is not marked `<!-- not run: reason -->` just above."""
    for block in BLOCK.finditer(text):
        if not NOT_RUN.search(text[: block.start()]):
            yield text.count("\n", 0, block.start(1)) + 1, block[1]


def run(page, text, folder):
    """Run a page's blocks as one script with the page's line numbers; one headed by a file's name becomes that file."""
    lines = []
    for line, code in blocks(text):
        if named := FILE.match(code):
            (folder / named[1]).write_text(code)
            continue
        lines += [""] * (line - 1 - len(lines)) + code.splitlines()
    script = folder / f"page_{page.stem.replace('-', '_')}.py"
    script.write_text("\n".join(lines) + "\n")
    return subprocess.run([sys.executable, script.name], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page, tmp_path):
    done = run(page, page.read_text(encoding="utf-8"), tmp_path)
    assert done.returncode == 0, done.stderr


PAGE = """Words.

```python
# helper.py
VALUE = 3
```

<!-- not run: needs a GPU -->
```python
raise SystemExit("run all the same")
```

```python
from helper import VALUE
```
More words, and code that is no example:

    raise SystemExit("no")

```python
assert VALUE == {}
```
"""


@pytest.mark.parametrize(("value", "holds"), [(3, True), (4, False)])
def test_an_example_that_does_not_hold_is_found_with_its_line(tmp_path, value, holds):
    done = run(Path("a-page.md"), PAGE.format(value), tmp_path)
    assert (done.returncode == 0) == holds, done.stderr
    if not holds:
        assert "line 21" in done.stderr and "AssertionError" in done.stderr


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
