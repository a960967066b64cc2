"""The Python blocks of docs/ run, in order, in an empty folder; links, files and modules that pages name exist."""

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest
from forked import forked

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]
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
    return forked(script.stem, imports="torch", cwd=folder)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page, tmp_path):
    done = run(page, page.read_text(encoding="utf-8"), tmp_path)
    assert done.returncode == 0, done.stderr


PROSE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "config/README.md", *PAGES]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([\w-]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    for link, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


def test_the_index_names_every_page():
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if page.name != "README.md" and f"({page.name})" not in index] == []


NAMED_FILE = re.compile(r"(?<![\w/.-])(?:mcgrpo|tests|workflow|config|docs|bench|examples|envs)/[\w./-]*\w(?![\w*{])")
NAMED_MODULE = re.compile(r"(?<![\w/.-])mcgrpo(?:\.\w+)+")
MADE = {"config/config.lock.yaml"}
TAGS = {"mcgrpo.kind", "mcgrpo.run", "mcgrpo.cell", "mcgrpo.digest", "mcgrpo.NAME"}


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_module_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    files = {name for name in {*NAMED_FILE.findall(text)} - MADE if "NAME" not in name}
    assert [name for name in files if not (ROOT / name).exists()] == []
    for name in {*NAMED_MODULE.findall(text)} - TAGS:
        resolve_name(name)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
