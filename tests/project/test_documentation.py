"""What the documentation says of study files, keys and targets is so."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

from mcgrpo.study import plan
from mcgrpo.study import read as study_file
from mcgrpo.study.protocols import training_changes

ROOT = Path(__file__).parents[2]
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/study.schema.yaml").read_text())
YAML = re.compile(
    r"^```yaml\n(# ([\w.-]+\.yaml), merged over (config/[\w-]+\.yaml)\n.*?)^```$", re.MULTILINE | re.DOTALL
)
TARGET = re.compile(r"(?<=\s)results/[^\s`]+")
PAGES = ("extend", "run-a-study")


def page(name):
    return (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")


@cache
def layered(name):
    """File name -> (its text, the study it is merged over), of a page's study files."""
    return {file: (text, base) for text, file, base in YAML.findall(page(name))}


def files_of(config):
    """All grades that a study has."""
    found = plan.as_json(config)["evaluations"].items()
    return {f"results/{config['study']}/grades/{run}/{benchmark}.jsonl" for run, names in found for benchmark in names}


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", PAGES)
def test_every_study_file_of_a_page_plans_more_runs_or_evaluations(name, tmp_path):
    assert len(layered(name)) == page(name).count("```yaml")  # each names itself and what it is laid over
    for file, (text, base) in layered(name).items():
        (tmp_path / file).write_text(text, encoding="utf-8")
        more = files_of(study_file.read([ROOT / base, tmp_path / file]))
        assert more > files_of(study_file.read([ROOT / base])) or "study:" in text


@pytest.mark.parametrize("name", PAGES)
def test_every_target_of_a_page_is_planned_by_a_study_that_its_command_names(name, tmp_path):
    files, checked = layered(name), 0
    for line in page(name).replace("\\\n", "").splitlines():
        if not line.startswith("snakemake ") or not (targets := " ".join(TARGET.findall(line))):
            continue
        named = re.findall(r"[\w./-]+\.yaml", line) or ["config/config.yaml"]
        for file in (overlays := [file for file in named if file in files]):
            (tmp_path / file).write_text(files[file][0], encoding="utf-8")
        config = study_file.read([(tmp_path if file in overlays else ROOT) / file for file in named])
        wanted = subprocess.run(["bash", "-c", f"echo {targets}"], capture_output=True, text=True, check=True)
        assert set(wanted.stdout.split()) <= files_of(config), line
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
    text = re.sub(
        r"### Every other argument of TRL.*?^### Rewards|^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL
    )
    named = {word for span in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", span)}
    assert [path for path in keys(SCHEMA) if path[-1] not in named] == []


def test_the_page_on_paper_and_code_names_the_switches_that_released_sets():
    text = page("paper-and-code")
    for method in ("grpo", "mc-grpo", "dapo", "mc-dapo"):
        assert all(f"`{key}" in text for key in training_changes("released", method, "gsm8k"))
