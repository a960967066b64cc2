"""What the documentation says is so: its examples run, and what it names (files, modules, keys, targets) exists."""

import re
import subprocess
from pathlib import Path
from pkgutil import resolve_name

import pytest
import yaml
from forked import forked

from mcgrpo.study import plan
from mcgrpo.study import read as study_file
from mcgrpo.study.protocols import training_changes

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
PROSE = ["README.md", "CONTRIBUTING.md", "config/README.md", *(f"docs/{name}" for name in PAGES)]

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: [^>\n]+ -->\n\Z")
FILE = re.compile(r"# (\w+\.py)\n")


def run(name, folder):
    """Run a page's blocks as one script with the page's line numbers; one headed by a file's name becomes that file.

    Blocks marked `<!-- not run: reason -->` just above are left out.
    """
    text, lines = PAGES[name], []
    for block in BLOCK.finditer(text):
        if NOT_RUN.search(text[: block.start()]):
            continue
        if named := FILE.match(block[1]):
            (folder / named[1]).write_text(block[1])
            continue
        lines += [""] * (text.count("\n", 0, block.start(1)) - len(lines)) + block[1].splitlines()
    script = folder / f"page_{Path(name).stem.replace('-', '_')}.py"
    script.write_text("\n".join(lines) + "\n")
    return forked(script.stem, imports="torch", cwd=folder)


@pytest.mark.parametrize("name", [name for name, text in PAGES.items() if BLOCK.search(text)])
def test_the_python_blocks_of_a_page_run_in_order_in_an_empty_folder(name, tmp_path):
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr


LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([\w-]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PROSE)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(name):
    page = ROOT / name
    for link, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


def test_the_index_names_every_page():
    assert [name for name in PAGES if name != "README.md" and f"({name})" not in PAGES["README.md"]] == []


NAMED_FILE = re.compile(r"(?<![\w/.-])(?:mcgrpo|tests|workflow|config|docs|bench|examples|envs)/[\w./-]*\w(?![\w*{])")
NAMED_MODULE = re.compile(r"(?<![\w/.-])mcgrpo(?:\.\w+)+")
MADE = {"config/config.lock.yaml"}
TAGS = {"mcgrpo.kind", "mcgrpo.run", "mcgrpo.cell", "mcgrpo.digest", "mcgrpo.NAME"}


@pytest.mark.parametrize("name", PROSE)
def test_every_file_and_module_that_a_page_names_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    files = {named for named in {*NAMED_FILE.findall(text)} - MADE if "NAME" not in named}
    assert [named for named in files if not (ROOT / named).exists()] == []
    for module in {*NAMED_MODULE.findall(text)} - TAGS:
        resolve_name(module)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/study.schema.yaml").read_text())
YAML = re.compile(
    r"^```yaml\n(# ([\w.-]+\.yaml), merged over (config/[\w-]+\.yaml)\n.*?)^```$", re.MULTILINE | re.DOTALL
)
TARGET = re.compile(r"(?<=\s)results/[^\s`]+")


def files_of(*paths):
    """All grades that a study of these files has."""
    config = study_file.read([ROOT / path for path in paths])
    found = plan.plan_of(config).evaluations.items()
    return {f"results/{config['study']}/grades/{run}/{benchmark}.jsonl" for run, names in found for benchmark in names}


@pytest.mark.parametrize("name", ["extend.md", "run-a-study.md"])
def test_study_files_of_a_page_plan_more_and_its_commands_what_they_name(name, tmp_path, monkeypatch):
    """Each study file more runs or evaluations than the one it is laid over; each command its targets."""
    monkeypatch.chdir(ROOT)
    blocks, checked = YAML.findall(PAGES[name]), 0
    assert len(blocks) == PAGES[name].count("```yaml")  # each names itself and what it is laid over
    for text, file, base in blocks:
        (tmp_path / file).write_text(text, encoding="utf-8")
        assert files_of(base, tmp_path / file) > files_of(base) or "study:" in text
    for line in PAGES[name].replace("\\\n", "").splitlines():
        if not line.startswith("snakemake ") or not (targets := " ".join(TARGET.findall(line))):
            continue
        named = re.findall(r"[\w./-]+\.yaml", line) or ["config/config.yaml"]
        written = [tmp_path / file if (tmp_path / file).exists() else file for file in named]
        wanted = subprocess.run(["bash", "-c", f"echo {targets}"], capture_output=True, text=True, check=True)
        assert set(wanted.stdout.split()) <= files_of(*written), line
        checked += 1
    assert checked >= 4


def keys(schema, path=()):
    """Every key that a part of the schema knows, with those above it; `$defs` followed."""
    if "$ref" in schema:
        yield from keys(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], path)
    for key, below in schema.get("properties", {}).items():
        yield (*path, key)
        yield from keys(below, (*path, key))
    if isinstance(below := schema.get("additionalProperties"), dict):
        yield from keys(below, path)


def test_every_key_of_a_study_file_is_explained():
    text = (ROOT / "config/README.md").read_text(encoding="utf-8")
    text = re.sub(r"### Every other argument of TRL.*?^### Rewards", "", FENCE.sub("", text), flags=re.M | re.S)
    named = {word for span in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", span)}
    assert [path for path in keys(SCHEMA) if path[-1] not in named] == []


def test_the_page_on_paper_and_code_names_the_switches_that_released_sets():
    for method in ("grpo", "mc-grpo", "dapo", "mc-dapo"):
        changes = training_changes("released", method, "gsm8k")
        assert all(f"`{key}" in PAGES["paper-and-code.md"] for key in changes)
