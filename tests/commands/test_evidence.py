"""`mcgrpo bundle` of a real study, and `mcgrpo verify` of its archive: as it is, changed, and forged."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from evidence_archives import (
    BASE,
    COMMIT,
    FILES,
    MC_RUN,
    STUDY,
    change,
    edit,
    failures,
    forged,
    listed,
    pack,
    run,
    set_commit,
)

from mcgrpo.commands.evidence import archive
from mcgrpo.commands.evidence import verify as module
from mcgrpo.commands.evidence.bundle import bundle
from mcgrpo.commands.evidence.compare import difference
from mcgrpo.commands.evidence.contents import FORMAT, MANIFEST, SUMS
from mcgrpo.commands.evidence.contents import STUDY as STUDY_JSON
from mcgrpo.commands.evidence.verify import verify
from mcgrpo.files import iter_json_lines, read_json, write_jsonl
from mcgrpo.study.check import StudyError
from mcgrpo.sums import sha256

pytestmark = pytest.mark.slow
GRADES = f"{BASE}/grades/{MC_RUN}/two-step.jsonl"


@pytest.fixture
def copied(study, tmp_path, monkeypatch):
    """The study in a folder of its own, to be changed, as the working directory."""
    monkeypatch.chdir(shutil.copytree(study, tmp_path / "copy"))
    return Path.cwd()


class TestABundle:
    def test_is_the_same_to_the_byte_for_the_same_study(self, packed, copied):
        for path in sorted(copied.rglob("*"), reverse=True):
            os.utime(path)
        path, missing = bundle(FILES, Path("again.tar.xz"), completions=True)
        assert path.read_bytes() == packed.read_bytes() and missing == []

    def test_says_what_made_it_and_holds_no_model(self, content):
        manifest = read_json(content / MANIFEST)
        assert manifest["commits"] == {COMMIT: 4} and manifest["trainings"] == 4
        assert manifest["versions"][0]["trainings"] == 4 and "trl" in manifest["versions"][0]
        assert not [name for name in listed(content) if "model" in name or "envs/" in name]

    def test_has_nothing_that_is_not_planned_and_completions_only_where_asked(self, copied):
        (copied / BASE / "runs" / MC_RUN / "notes.txt").write_text("by hand\n")
        path, _ = bundle(FILES)
        with archive.tarfile.open(path) as tar:
            names = tar.getnames()
        assert not [name for name in names if "notes" in name or "/completions/" in name]
        assert not failures(path)

    def test_of_an_unfinished_study_names_what_is_missing(self, copied):
        shutil.move(copied / BASE / "runs" / MC_RUN, copied / BASE / "unfinished" / MC_RUN)
        path, missing = bundle(FILES)
        assert f"{BASE}/runs/{MC_RUN}/run.json: no such file" in missing
        assert "complete" in failures(path)
        partial = {check.topic: check.status for check in verify(path, partial=True)}
        assert partial["complete"] == "note" and partial["files"] == "ok"

    def test_names_grades_that_are_older_than_their_training(self, copied):
        os.utime(GRADES, (0, 0))
        assert bundle(FILES)[1] == [f"{GRADES}: older than the training that it should be of"]

    def test_of_a_study_that_was_not_run_or_by_other_files_is_refused(self, copied, tmp_path, monkeypatch):
        Path("other.yaml").write_text("seeds: [0]\n")
        with pytest.raises(StudyError, match=r"plan\.json: runs differs from these study files"):
            bundle([*FILES, "other.yaml"])
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        Path("base.yaml").write_text(yaml.safe_dump(STUDY))
        with pytest.raises(StudyError, match="no such file: run study 'tiny' first"):
            bundle(["base.yaml"])


class TestAWholeArchive:
    def test_is_verified_without_snakemake_trl_or_a_network(self, packed, tmp_path):
        code = (
            "import runpy, socket, sys\n"
            "class Absent:\n"
            "    def find_spec(name, *_):\n"
            "        if name.split('.')[0] in ('snakemake', 'trl', 'transformers', 'accelerate', 'mlflow'):\n"
            "            raise ModuleNotFoundError(name, name=name)\n"
            "sys.meta_path.insert(0, Absent)\n"
            "socket.socket.connect = None\n"
            f"sys.argv = ['verify', {str(packed)!r}, '--regrade']\n"
            f"runpy.run_module({module.__name__!r}, run_name='__main__')\n"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        *checks, verdict = done.stdout.splitlines()
        assert done.returncode == 0 and verdict == f"{packed}: verified", done.stdout + done.stderr
        topics = ("files", "study", "complete", "manifest", "commits", "data", "problems", "grades", "tables")
        assert [line.split()[:2] for line in checks[:-2]] == [["ok", topic] for topic in topics]
        assert tuple(checks[-2:]) == module.MEANING
        assert list(tmp_path.iterdir()) == []

    def test_of_another_version_is_compared_by_its_numbers(self, content):
        change(content / MANIFEST, mcgrpo="0.0.9")
        edit(content / "reports/tiny/tables.md", "Tiny study", "Small study")
        checks = {check.topic: check for check in verify(forged(content))}
        assert checks["study"].status == "note" and not any(each.status == "FAILED" for each in checks.values())
        edit(content / f"{BASE}/summary.csv", ",0.", ",0.9")
        assert failures(forged(content))["tables"] == (f"{BASE}/summary.csv: line 4 differs",)

    def test_of_an_earlier_format_is_refused_with_the_commit_that_reads_it(self, content):
        change(content / MANIFEST, format=1, commit=COMMIT)
        told = failures(forged(content))
        reader = f"`mcgrpo verify` of {COMMIT} reads it"
        assert told == {"study": (f"ArchiveError: packed in format 1, not {FORMAT}: {reader}",)}

    def test_with_other_signals_is_found(self, content):
        edit(content / f"{BASE}/signals.csv", ",0.", ",0.9")
        assert failures(forged(content))["tables"] == (f"{BASE}/signals.csv: line 2 differs",)


class TestAChangedFile:
    @pytest.mark.parametrize(
        "name", [GRADES, f"{BASE}/runs/{MC_RUN}/run.json", f"{BASE}/overlap.json", STUDY_JSON, MANIFEST]
    )
    def test_is_named(self, content, name):
        data = bytearray((content / name).read_bytes())
        data[len(data) // 2] ^= 1
        (content / name).write_bytes(data)
        assert failures(pack(content), until="files")["files"] == (f"{name}: not in {SUMS}, or not with this hash",)

    def test_that_is_missing_or_not_listed_is_named(self, content):
        (content / GRADES).unlink()
        (content / "more.txt").write_text("pip")
        told = failures(pack(content), until="files")["files"]
        assert told == (f"more.txt: not in {SUMS}, or not with this hash", f"{GRADES}: not in the archive")

    @pytest.mark.parametrize(
        ("theirs", "told"),
        [("a 1.5\nb\n", ""), ("a 1.5000001\nb\n", ""), ("a 1.6\nb\n", "line 1 differs"),
         ("c 1.5\nb\n", "line 1 differs"), ("a 1.5\n", "line 2 differs"), ("a 1.5\nb\n\n", "line 3 differs"),
         (None, "not in the archive")],
    )  # fmt: skip
    def test_differs_in_a_line(self, tmp_path, theirs, told):
        (tmp_path / "mine.csv").write_text("a 1.5\nb\n")
        if theirs is not None:
            (tmp_path / "theirs").write_text(theirs)
        assert difference(tmp_path / "mine.csv", tmp_path / "theirs") == told


def with_another_number(content, name):
    """Change the last digit of a file; returns what is told of it."""
    text = (content / name).read_text()
    place = [match.start() for match in re.finditer(r"\d", text)][-1]
    (content / name).write_text(f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}")
    line = text[:place].count("\n") + 1
    return f"{name}: line {line} differs"


class TestAForgedArchive:
    """Its hashes fit what was changed, so that only what the numbers come from can tell."""

    def test_with_another_verdict_makes_other_tables(self, content):
        edit(content / GRADES, '"verdict": "unparseable"', '"verdict": "correct"')
        found = failures(forged(content), regrade=True)
        changed = {line.partition(":")[0] for line in found["tables"]}
        assert found["grades"] == (f"{GRADES}: line 1 differs",)
        assert {f"{BASE}/scores.jsonl", f"{BASE}/summary.csv", "reports/tiny/tables.md"} <= changed

    @pytest.mark.parametrize("key", ["verdict_released", "verdict"])
    def test_with_another_verdict_of_each_protocol_is_found(self, content, key):
        rows = [row for _, row in iter_json_lines(content / GRADES)]
        write_jsonl(content / GRADES, [row | {key: "correct"} for row in rows])
        assert f"{BASE}/scores.jsonl" in {line.partition(":")[0] for line in failures(forged(content))["tables"]}

    def test_without_a_verdict_of_a_protocol_is_found(self, content):
        rows = [row for _, row in iter_json_lines(content / GRADES)]
        write_jsonl(content / GRADES, [rows[0] | {"verdict_released": None}, *rows[1:]])
        (told,) = failures(forged(content), until="complete")["complete"]
        assert told.startswith(f"{GRADES}:1: no 'verdict_released'")

    def test_with_other_numbers_is_found_and_every_file_named(self, content):
        names = f"{BASE}/scores.jsonl", f"{BASE}/summary.csv", "reports/tiny/tables.tex", "reports/tiny/claims.md"
        told = [with_another_number(content, name) for name in names]
        assert sorted(failures(forged(content))["tables"]) == sorted(told)

    def test_with_another_rate_of_sign_flips_is_found(self, content):
        told = with_another_number(content, f"{BASE}/flips/toy-qwen3/none/G0/default/seed0/two-step.jsonl")
        assert told in failures(forged(content))["tables"]

    def test_without_the_hard_problems_is_found(self, content):
        for path in content.glob(f"{BASE}/grades/**/*.jsonl"):
            rows = [row for _, row in iter_json_lines(path)]
            write_jsonl(path, [row for row in rows if row["id"] != rows[0]["id"]])
        assert any(
            "is over 31 problems of 32" in line for line in failures(forged(content), until="problems")["problems"]
        )

    def test_with_a_training_of_unknown_code_is_found(self, content):
        set_commit(content / f"{BASE}/runs/{MC_RUN}/run.json", f"{COMMIT}-dirty")
        change(content / MANIFEST, commits={COMMIT: 3, f"{COMMIT}-dirty": 1})
        assert failures(forged(content), until="commits") == {"commits": (f"{MC_RUN}: {COMMIT}-dirty",)}

    def test_with_files_that_are_not_planned_is_found(self, content):
        names = [
            f"{BASE}/runs/{MC_RUN}/model.pkl",
            ".bashrc",
            "envs/noise.txt",
            "reports/tiny/final.md",
            "study/evil.py",
        ]
        for name in names:
            (content / name).parent.mkdir(parents=True, exist_ok=True)
            (content / name).write_text("99.9\n")
        told = tuple(f"{name}: nothing that the study plans" for name in sorted(names))
        assert failures(forged(content), until="complete")["complete"] == told


class TestAHostileArchive:
    """What would run, write elsewhere, hide or fill the memory, if an archive were believed."""

    @pytest.mark.parametrize(
        "hostile",
        [
            {"training": STUDY["training"] | {"estimator": "evil:centre"}},
            {"datasets": {name: each | {"task": "evil:centre"} for name, each in STUDY["datasets"].items()}},
        ],
        ids=["estimator", "task"],
    )
    def test_with_an_estimator_or_a_task_of_its_own_imports_nothing_of_it(
        self, hostile, content, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(content / "study")
        Path("evil.py").write_text(f"open({str(tmp_path / 'has-run')!r}, 'w')\ncentre = None\n")
        change(Path("study.json"), **hostile)
        told = failures(forged(content), regrade=True)
        assert told and "study" not in told  # it got past the schema
        assert not (tmp_path / "has-run").exists() and "evil" not in sys.modules

    @pytest.mark.parametrize("name", ["../..", "/tmp/tiny", "a/../../b", "", "tiny\nverified"])
    def test_of_a_study_whose_name_is_a_path_is_refused(self, content, name):
        change(content / STUDY_JSON, study=name)
        assert failures(forged(content)).keys() == {"study"}

    def test_with_a_million_runs_is_refused_before_they_are_planned(self, content):
        headline = STUDY["experiments"]["headline"] | {"num_generations": list(range(2, 402, 2))}
        change(content / STUDY_JSON, seeds=list(range(1000)), experiments={"headline": headline})
        assert "more than 100,000" in failures(forged(content))["study"][0]

    def test_cannot_write_a_line_of_the_report(self, content):
        change(content / STUDY_JSON, **{"surprise\nok     all: verified\x1b[2J": 1})
        line = next(str(check) for check in verify(forged(content)) if check.topic == "study")
        assert "\\nok     all: verified\\x1b[2J" in line and line.count("\n") == 1


def test_as_commands(study, tmp_path):
    done = run("mcgrpo.cli", "bundle", *FILES, "--output", tmp_path / "a.tar.xz", folder=study)
    digest = sha256(tmp_path / "a.tar.xz")
    assert re.fullmatch(rf"{tmp_path}/a\.tar\.xz: 0\.\d MB, sha256 {digest}\n", done.stdout)
    for command, told in (
        (["bundle", "none.yaml"], "none.yaml: no such file"),
        (["bundle", *FILES, "--output", "."], "error: --output .: is a folder"),
        (["verify", "none.tar.xz"], "error: none.tar.xz: No such file or directory"),
    ):
        done = run("mcgrpo.cli", *command, folder=study)
        assert done.returncode and told in done.stderr
