"""A study as small as studies get, and archives of it that somebody has changed."""

import subprocess
import sys
import tarfile
from pathlib import Path

import yaml

from mcgrpo.commands.evidence import archive
from mcgrpo.commands.evidence.contents import SUMS
from mcgrpo.commands.evidence.verify import verify
from mcgrpo.files import read_json, write_json
from mcgrpo.sums import sha256, sums_of, write_list

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
BASE = "results/tiny"
MC_RUN = "toy/mc-grpo/G2/default/seed1"
FILES = ["base.yaml", "title.yaml"]
ARCHIVE = "tiny-evidence.tar.xz"

STUDY = {
    "study": "tiny",
    "reports": "reports/tiny",
    "title": "Tiny study",
    "seeds": [0, 1],
    "preload": True,
    "tracking_uri": None,
    "models": {
        "toy": {
            "toy": {"architecture": "qwen3", "hidden_size": 32, "layers": 1, "heads": 1, "intermediate_size": 64,
                    "seed": 0},
            "warm_start": {"datasets": ["two-step"], "steps": 5, "batch_size": 8, "learning_rate": 5e-3},
        }
    },
    "datasets": {
        "two-step": {
            "task": "gsm8k",
            "toy": {"kind": "two-step", "seed": 1},
            "splits": {"warm": {"rows": 40}, "train": {"rows": 16}, "test": {"rows": 16}},
        }
    },
    "settings": {"toy": {"model": "toy", "dataset": "two-step", "prompt": "plain", "benchmarks": {"in": ["two-step"]}}},
    "training": {"prompts_per_step": 2, "max_steps": 2, "learning_rate": 2e-4, "max_completion_length": 16},
    "evaluation": {"samples": 2, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 16, "batch_size": 64},
    "grading": ["paper", "released"],
    "rollout_tables": {"steps": 2, "prompts": 1},
    "experiments": {
        "main": {"settings": ["toy"], "methods": ["grpo", "mc-grpo"], "num_generations": [2]},
        "sign-flips": {
            "settings": ["toy"],
            "evaluate": [],
            "sign_flips": {"prompts": 4, "rollouts": 8, "subset_sizes": [2], "temperature": 1.0},
        },
    },
}  # fmt: skip


def make_study(folder):
    """Run the study and pack it; its trainings are said to be of a commit, as a developer's work tree is dirty."""
    (folder / "base.yaml").write_text(yaml.safe_dump({**STUDY, "title": "Untitled"}))
    (folder / "title.yaml").write_text("title: >\n  Tiny\n  study\n")  # in one line wherever it is shown
    targets = ["reports/tiny/tables.tex", "reports/tiny/claims.csv", f"{BASE}/overlap.json",
               "resources/data/tiny/two-step.audit.json"]  # fmt: skip
    made = run("snakemake", *targets, "--snakefile", ROOT / "Snakefile", "--cores", 2, "--quiet", "all",
               "--configfile", *FILES, folder=folder)  # fmt: skip
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
        write_json(path, record)
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
