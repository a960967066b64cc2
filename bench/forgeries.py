"""Forgeries of an honest archive: its files, with something changed, behind a manifest that fits."""

import json
import random
from collections.abc import Callable, Iterator
from itertools import pairwise

from attacks import Attack, Files, forged, jsonl

from mcgrpo.commands.evidence.contents import STUDY

CODE = "__import__('pathlib').Path({canary!r}).touch()"
YAML = {
    "a template": "__use_yte__: true\n__definitions__:\n  - {code}\n",
    "a tag": "title: !!python/object/apply:eval [\"{code}\"]\n",
    "a new object": "title: !!python/object/new:os.system [\"touch {canary}\"]\n",
    "aliases that grow": "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join(['*' + old] * 9)}]\n" for old, new in pairwise("abcdefghijkl")),
    "an alias of itself": "title: &a [*a]\n",
    "a deep nest": "title: " + "[" * 20_000 + "]" * 20_000 + "\n",
    "a key twice": "title: Tiny study\ntitle: Another\n",
    "nothing": "", "a list": "[1, 2]\n", "no text": "\x00\x01\n", "merge keys": "<<: [{{a: 1}}, {{b: 2}}]\n",
}  # fmt: skip
TWISTS: dict[str, Callable[[bytes], bytes]] = {
    "deleted": lambda data: b"", "half": lambda data: data[: len(data) // 2], "an empty list": lambda data: b"[]\n",
    "an empty object": lambda data: b"{}\n", "noise": lambda data: random.Random(0).randbytes(999) + data,
    "twice": lambda data: data + data, "a deep nest": lambda data: b"[" * 100_000 + data,
    "a huge number": lambda data: data.replace(b"0", b"1" + b"0" * 10_000, 1),
    "numbers that are none": lambda data: data.replace(b"0", b"NaN").replace(b"1", b"-Infinity"),
    "strings for numbers": lambda data: data.replace(b": 0", b': "0"').replace(b": 1", b': "1"'),
    "a line of 30 MiB": lambda data: b'{"step": 1, "a": [' + b"[]," * (10 << 20) + b"1]}\n" + data,
    "a line less": lambda data: data[: data.rstrip(b"\n").rfind(b"\n") + 1],
}  # fmt: skip


def studies(files: Files, top: str, canary: str) -> Iterator[tuple[str, Attack]]:
    """Studies that would run, fill, or write elsewhere."""
    config = json.loads(files[STUDY])
    layer = next(name for name in files if name.startswith("study/0-"))

    def with_study(**changed: object) -> Attack:
        data = (json.dumps({**config, **changed}, indent=2) + "\n").encode()
        return forged({**files, STUDY: data}, top)

    code = CODE.format(canary=canary)
    for name, text in YAML.items():
        data = text.format(code=code, canary=canary).encode()
        for where in (layer, layer.replace(".yaml", ".lock.yaml")):
            if data or where in files:  # an empty lock file pins nothing, and nothing is pinned
                yield f"yaml: {name} in {where}", forged({**files, where: data and files.get(where, b"") + data}, top)
    for name in (
        "../..",
        "/tmp/escaped",
        "..",
        ".",
        "",
        "a/../../b",
        "tiny\n",
        "\x1b[2Jverified",
        "x" * 5000,
        None,
        3,
        [],
    ):
        yield f"names: study {name!a:.40}", with_study(study=name)
        renamed = (json.dumps({**config, "study": name}, indent=2) + "\n").encode()
        yield f"names: study {name!a:.40} in the manifest too", forged({**files, STUDY: renamed}, top, study=name)
    for key, value in (("seeds", list(range(900))), ("seeds", list(range(100_000))), ("seeds", [0, "0"] * 400),
                       ("title", "\nok     all: verified"), ("reports", "../../escaped"), ("surprise", 1)):  # fmt: skip
        yield f"study: {key} {str(value)[:30]!a}", with_study(**{key: value})
    for name in ("os:system", "evil:centre", "..evil:x", "study.evil:x", "unknown"):
        evil = {"study/evil.py": f"{code}\ncentre = None\n".encode(), "evil.py": code.encode()}
        data = (json.dumps({**config, "training": {**config["training"], "estimator": name}}, indent=2) + "\n").encode()
        yield f"study: estimator {name}", forged({**files, STUDY: data, **evil}, top)
    sign_flips = config["experiments"]["sign-flips"]["sign_flips"]
    for key, value in (("subsamples", 10**12), ("subset_sizes", [10**6]), ("rollouts", 10**9), ("prompts", 10**9)):
        flips = {**config["experiments"]["sign-flips"], "sign_flips": {**sign_flips, key: value}}
        yield f"study: {key} {value}", with_study(experiments={**config["experiments"], "sign-flips": flips})
    for value in (10**15, 4, 2):
        yield f"study: {value} steps", with_study(training={**config["training"], "max_steps": value})
    for listed in (["../../../etc/passwd"], ["/etc/passwd"], [], ["study/none.yaml"], [STUDY], [layer] * 50):
        yield f"study: files {str(listed)[:40]}", forged(files, top, study_files=listed)
    twice = b'{"study": 1, ' + files[STUDY].lstrip(b"{")
    nested, large = b"[" * 200_000 + b"]" * 200_000, b"[" + b"0," * (2 << 20) + b"0]"
    for name, data in (("a deep nest", nested), ("4 MiB", large), ("a key twice", twice)):
        yield f"study: study.json is {name}", forged({**files, STUDY: data}, top)
    yield "study: another top folder", forged(files, "other-evidence")


def endless(files: Files, top: str) -> Attack:
    """Answers of MATH that no grader comes to an end with, in a study that says that it is of MATH."""
    config = json.loads(files[STUDY])
    config["datasets"]["two-step"]["task"] = "math"
    name = next(name for name in sorted(files) if "/completions/" in name)
    rows = [{"id": str(n), "sample": 0, "answer": "1", "completion": f"$\\boxed{{100000000! + {n}}}$"}
            for n in range(1000)]  # fmt: skip
    data = (json.dumps(config, indent=2) + "\n").encode()
    return forged({**files, STUDY: data, name: jsonl(rows)}, top)


def in_reverse(row: dict) -> dict:
    """A group in another order: its numbers fit, the texts of it do not."""
    return {key: each[::-1] if isinstance(each, list) else each for key, each in row.items()}


def evidence(files: Files, top: str) -> Iterator[tuple[str, Attack]]:
    """Results that are not those of the study's trainings."""
    runs = [name for name in files if name.endswith("/groups.jsonl")]
    for name in runs:
        rows = [json.loads(line) for line in files[name].splitlines()]
        for twist, change in (
            ("signs flipped", lambda row: row | {"advantages": [-each for each in row["advantages"]]}),
            ("rewards reversed", lambda row: row | {"rewards": row["rewards"][::-1]}),
            ("all in reverse", in_reverse),
            ("all advantages 0", lambda row: row | {"advantages": [0.0] * len(row["rewards"])}),
            ("all rewards 1", lambda row: row | {"rewards": [1.0] * len(row["rewards"])}),
        ):
            yield f"groups: {twist} in {name}", forged({**files, name: jsonl([*map(change, rows)])}, top)
    record = next(name for name in files if name.endswith("/run.json"))
    for path in ("/dev/zero", "../../../../../../../../../dev/zero", "/etc/passwd"):
        data = files[record].replace(b'"weights/SHA256SUMS"', json.dumps(path).encode())
        yield f"paths: a sum of {path}", forged({**files, record: data}, top, reseal=False)
    gone = {name: data for name, data in files.items() if not name.endswith("/groups.jsonl")}
    yield "missing: every groups.jsonl", forged(gone, top)
    yield "missing: all results", forged({name: data for name, data in files.items() if "/runs/" not in name}, top)
    for name in sorted(files):
        if name.startswith(("results/tiny/", "reports/")) and "/completions/" not in name and "/rollouts/" not in name:
            yield f"missing: {name}", forged({key: data for key, data in files.items() if key != name}, top)
    changed = (
        "results/tiny/summary.csv",
        *(f"reports/tiny/{each}" for each in ("tables.csv", "tables.tex", "claims.csv")),
    )
    for name in changed:
        data = files[name].replace(b"0.", b"0.99").replace(b",0,", b",99.9,").replace(b" 0", b" 99.9") + b"99.9\n"
        yield f"tables: {name}", forged({**files, name: data}, top)
    yield "grading: a thousand completions that take 5 seconds each", endless(files, top)
    for name in ("config/claims.yaml", "config/published.csv"):
        yield f"tables: {name}", forged({**files, name: files[name] + b"\n# 99.9\n"}, top)
    more = ("results/tiny/tables.md", "study/evil.py", "reports/tiny/more.tex", "results/other/summary.csv", ".bashrc")
    for name in more:
        yield f"too many: {name}", forged({**files, name: b"99.9\n"}, top)
    ends = ("metrics.jsonl", "groups.jsonl", "run.json", "rollouts.jsonl", "plan.json", "scores.csv", "values.jsonl")
    checked = [name for name in sorted(files) if name.endswith(ends) or "/grades/toy/mc-grpo" in name]
    for name in checked:
        for twist, change in TWISTS.items():
            if (data := change(files[name])) != files[name]:
                yield f"twisted: {twist}, {name}", forged({**files, name: data}, top)
