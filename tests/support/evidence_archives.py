"""A small study, and archives of it that somebody has changed."""

import subprocess
import sys
import tarfile

import yaml
from runs import write_sealed
from studies import ROOT, small, snakemake

from mcgrpo.commands.evidence import archive
from mcgrpo.commands.evidence.contents import SUMS
from mcgrpo.commands.evidence.verify import verify
from mcgrpo.files import read_json, write_json
from mcgrpo.sums import seal, sha256, sums_of, write_list
from mcgrpo.train.provenance import commit

COMMIT = commit().removesuffix("-dirty")
BASE = "results/tiny"
MC_RUN = "toy-qwen3/mc-grpo/G2/default/seed1"
FILES = ["base.yaml", "title.yaml"]
ARCHIVE = "tiny-evidence.tar.xz"

STUDY = small(
    {"headline": {"methods": ["grpo", "mc-grpo"], "num_generations": [2]}, "sign-flips": {}},
    study="tiny", reports="reports/tiny", title="Tiny study", tracking_uri=None, grading=["paper", "released"],
)  # fmt: skip
STUDY["models"]["toy-qwen3"]["warm_start"]["steps"] = 2
STUDY["training"]["max_steps"] = 2


def make_study(folder):
    """Run the study and pack it; its trainings are said to be of a commit, as a developer's work tree is dirty."""
    (folder / "base.yaml").write_text(yaml.safe_dump({**STUDY, "title": "Untitled"}))
    (folder / "title.yaml").write_text("title: >\n  Tiny\n  study\n")  # in one line wherever it is shown
    targets = ["reports/tiny/tables.tex", "reports/tiny/claims.csv", f"{BASE}/overlap.json",
               *(f"resources/data/tiny/{name}-step.audit.json" for name in ("two", "three"))]  # fmt: skip
    made = snakemake(*targets, "--snakefile", ROOT / "Snakefile", "--cores", 2, "--quiet", "all",
                     "--configfile", *FILES, cwd=folder)  # fmt: skip
    assert made.returncode == 0, made.stderr
    for path in folder.glob(f"{BASE}/runs/**/run.json"):
        set_commit(path, COMMIT)
    made = run("mcgrpo.cli", "bundle", *FILES, "--completions", folder=folder)
    assert made.returncode == 0, made.stderr


def unpack(archive, folder):
    """What is in it, extracted, to be changed."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter=lambda member, _: member.replace(mtime=None))  # as `tar --touch` does
    return folder / "tiny-evidence"


def run(*command, folder):
    return subprocess.run([sys.executable, "-m", *map(str, command)], cwd=folder, capture_output=True, text=True)


def change(path, **keys):
    """Other values in a JSON file."""
    write_json(path, read_json(path) | keys)


def set_commit(path, commit):
    change(path, outcome=read_json(path)["outcome"] | {"commit": commit})
    seal(path)


def pack(content):
    """An archive of an extracted one's files as they are now."""
    path = content.parent / "changed.tar.xz"
    archive.write(path, content.name, listed(content))
    return path


def forged(content):
    """An archive whose hashes are made to fit what was changed in it."""
    for path in content.glob(f"{BASE}/runs/**/run.json"):
        record = read_json(path)
        sums = record["outcome"]["sums"]
        beside = {name: path.parent / name for name in sums if not name.startswith("weights/")}
        record["outcome"]["sums"] = {name: sha256(each) for name, each in beside.items() if each.is_file()}
        write_sealed(path, record)
    write_list(content / SUMS, sums_of(content))
    return pack(content)


def listed(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def failures(path, until="", **options):
    """Topic -> culprits of every check that failed; those after the topic `until` are not made."""
    found = {}
    for check in verify(path, **options):
        if check.status == "FAILED":
            found[check.topic] = tuple(check.culprits)
        if check.topic == until:
            break
    return found


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
