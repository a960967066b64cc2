"""The site of the documentation (`make site`): the pages as they are, and an API reference read from the source."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

project, release = PROJECT["name"], PROJECT["version"]
extensions = ["myst_parser", "sphinx.ext.napoleon", "autoapi.extension"]
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "config/README.md", "docs/*.md"]
root_doc = "README"
html_theme = "furo"
html_title = f"{project} {release}"
myst_heading_anchors = 4
default_role = "code"  # docstrings quote code once

# From the source alone: nothing of ours, torch or TRL is imported.
autoapi_dirs = [str(ROOT / "mcgrpo")]
autoapi_file_patterns = ["*.pyi", "*.py"]  # of both, the first: it names what a package imports on first use
autoapi_ignore = [
    f"{package}/*"
    for package in (ROOT / "mcgrpo").iterdir()
    if package.name not in ("estimators", "trainer", "engines", "grade")
]
autoapi_generate_api_docs = False
autoapi_add_toctree_entry = False
autoapi_keep_files = False
autoapi_options = ["members", "undoc-members"]


def _contents() -> str:
    """The table of contents: the sections of docs/README.md and the pages that they link to."""
    _, *sections = re.split(r"^## ", (ROOT / "docs/README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    trees = ["```{toctree}\n:hidden:\n\ndocs/README\n```"]
    for section in sections:
        pages = dict.fromkeys((ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#]+\.md)", section))
        names = [str(page.relative_to(ROOT).with_suffix("")) for page in pages]
        trees.append("\n".join(["```{toctree}", ":hidden:", f":caption: {section.splitlines()[0]}", "", *names, "```"]))
    return "\n\n".join(trees)


def _add_contents(app, docname, source):
    if docname == root_doc:
        source[0] += f"\n\n{_contents()}\n"


def _make_index(app, error):
    if not error:
        (Path(app.outdir) / "index.html").write_text(f'<meta http-equiv="refresh" content="0; url={root_doc}.html">\n')


def setup(app):
    """Connect what makes the table of contents and the front page."""
    app.connect("source-read", _add_contents)
    app.connect("build-finished", _make_index)
