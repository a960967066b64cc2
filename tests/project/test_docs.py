"""The Python blocks of docs/ run, in order, in an empty folder; links, files and modules that are named exist."""

import ast
import re
from pathlib import Path

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
TAGS = {"mcgrpo.kind", "mcgrpo.run", "mcgrpo.cell", "mcgrpo.digest", "mcgrpo.study"}
COMMENTED = [path for folder in ("config", "workflow", "envs", "profiles") for path in (ROOT / folder).rglob("*.*ml")]
COMMENTED += [*(ROOT / "workflow").rglob("*.smk"), ROOT / "Snakefile", ROOT / "Makefile", ROOT / "pyproject.toml"]


def docstrings(path):
    """All strings of a Python file that stand alone."""
    nodes, alone = [ast.parse(path.read_text(encoding="utf-8"))], []
    for node in nodes:  # which grow: statements alone, to look through their expressions takes three times as long
        nodes += [part for name in ("body", "orelse", "handlers", "finalbody") for part in getattr(node, name, ())]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            alone.append(node.value.value)
    return "\n".join(each for each in alone if isinstance(each, str))


def is_ours(name):
    """Whether a dotted name is a module of ours, or something in one."""
    folder = ROOT / name.replace(".", "/")
    if folder.is_dir() or folder.with_suffix(".py").is_file():
        return True
    parent, _, attribute = name.rpartition(".")
    file = ROOT / parent.replace(".", "/")
    file = file.with_suffix(".py") if file.with_suffix(".py").is_file() else file / "__init__.py"
    return file.is_file() and re.search(rf"\b{attribute}\b", file.read_text(encoding="utf-8")) is not None


def test_every_file_and_module_that_is_named_exists():
    texts = {path: path.read_text(encoding="utf-8") for path in (*PROSE, *COMMENTED)}
    for folder in ("mcgrpo", "tests", "bench", "examples", "workflow", "snakemake_logger_plugin_mcgrpo"):
        texts |= {path: docstrings(path) for path in (ROOT / folder).rglob("*.py")}
    missing = set()
    for path, text in texts.items():
        files = {name for name in set(NAMED_FILE.findall(text)) - MADE if not (ROOT / name).exists()}
        modules = {name for name in set(NAMED_MODULE.findall(text)) - TAGS if not is_ours(name)}
        missing |= {(str(path.relative_to(ROOT)), name) for name in files | modules if "NAME" not in name}
    assert missing == set()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
