"""`mcgrpo verify` of a real bundle: as it is, with a byte changed, and what it names."""

import resource
import shutil
import subprocess
import sys

import pytest
from evidence_archives import (
    BASE,
    COMMIT,
    MC_RUN,
    STUDY_JSON,
    change,
    failed,
    failures,
    forged,
    listed,
    lost,
    pack,
    run,
    set_commit,
)  # fmt: skip

from mcgrpo.commands.evidence import archive, regenerate
from mcgrpo.commands.evidence.manifest import MANIFEST, SUMS, read_manifest
from mcgrpo.commands.evidence.verify import difference, main, verify
from mcgrpo.files import read_json

pytestmark = pytest.mark.slow


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
            "runpy.run_module('mcgrpo.commands.evidence.verify', run_name='__main__')\n"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "ok     study     tiny: 0-base.yaml, 1-title.yaml" in done.stdout
        *checks, verdict = done.stdout.splitlines()
        assert verdict == f"{packed}: verified"
        assert [line.split()[:2] for line in checks] == [
            ["ok", topic]
            for topic in ("archive", "manifest", "files", "version", "study", "complete", "commits",
                          "rollouts", "grades", *regenerate.STEPS, "problems", "again")
        ]  # fmt: skip
        assert list(tmp_path.iterdir()) == []

    def test_makes_everything_again_that_it_has_of_the_analysis(self, content, tmp_path):
        config, planned = read_json(content / STUDY_JSON), read_json(content / BASE / "plan.json")
        for step in (regenerate.make_grades, *regenerate.STEPS.values()):
            step(content, config, planned, tmp_path / "made")
        raw = ("runs/", "completions/", "rollouts/", "overlap.json")
        made = {name for name in listed(content) if name.startswith((f"{BASE}/", "reports/"))}
        assert listed(tmp_path / "made").keys() == {
            name for name in made if not name.startswith(tuple(f"{BASE}/{part}" for part in raw))
        }


class TestAChangedByte:
    @pytest.mark.parametrize(
        "name",
        [
            f"{BASE}/grades/{MC_RUN}/two-step.jsonl", f"{BASE}/runs/{MC_RUN}/run.json",
            f"{BASE}/runs/{MC_RUN}/metrics.jsonl", f"{BASE}/scores.csv", f"{BASE}/overlap.json",
            "resources/data/tiny/two-step.audit.json", "reports/tiny/tables.md", "study/1-title.yaml", "envs/gpu.txt",
        ],
    )  # fmt: skip
    def test_of_a_file_is_found_and_its_file_named(self, content, name):
        data = bytearray((content / name).read_bytes())
        data[len(data) // 2] ^= 1
        (content / name).write_bytes(data)
        assert failed(pack(content), "files") == (f"{name}: not the SHA-256 of the manifest",)

    @pytest.mark.parametrize("name", [MANIFEST, SUMS])
    def test_of_the_manifest_or_its_sums_is_found(self, content, name):
        original = (content / name).read_bytes()
        for place in range(0, len(original), len(original) // 12):
            data = bytearray(original)
            data[place] ^= 1
            (content / name).write_bytes(data)
            path = pack(content)
            culprits = next(check.culprits for check in verify(path) if check.status == "FAILED")
            assert any(MANIFEST in line or SUMS in line for line in culprits), (place, culprits)

    def test_of_the_sums_is_named_by_the_file_that_it_is_about(self, content):
        original = (content / SUMS).read_text()
        (content / SUMS).write_text(original.replace(archive.sha256(content / "envs/cpu.txt"), "0" * 64))
        differ = f"{SUMS} and {MANIFEST} say different things"
        assert failures(pack(content)) == {"manifest": (f"envs/cpu.txt: {differ}",)}
        (content / SUMS).write_text("".join(reversed(original.splitlines(keepends=True))))
        assert failures(pack(content), until="files") == {"manifest": (f"its layout: {differ}",)}


class TestWhatIsNamed:
    def test_trainings_of_a_dirty_work_tree_or_of_no_commit(self, content):
        set_commit(content / f"{BASE}/runs/{MC_RUN}/run.json", f"{COMMIT}-dirty")
        set_commit(content / f"{BASE}/runs/toy/grpo/G2/default/seed0/run.json", None)
        found = failures(forged(content, commits={COMMIT: 2, f"{COMMIT}-dirty": 1, "None": 1}), until="scores")
        assert found == {"commits": (f"{MC_RUN}: {COMMIT}-dirty", "toy/grpo/G2/default/seed0: no commit")}

    def test_several_commits_as_a_note(self, content):
        set_commit(content / f"{BASE}/runs/{MC_RUN}/run.json", "f" * 40)
        checks = verify(forged(content, commits={COMMIT: 3, "f" * 40: 1}))
        commits = next(check for check in checks if check.topic == "commits")
        assert commits.status == "note"
        assert commits.finding == f"trainings: 3 of {COMMIT}, 1 of {'f' * 40}"

    def test_a_file_that_is_missing_or_that_no_manifest_lists(self, content):
        (content / "envs/gpu.txt").unlink()
        (content / "envs/more.txt").write_text("pip")
        found = failures(pack(content), until="scores")
        assert found == {"files": ("envs/gpu.txt: missing from the archive", "envs/more.txt: not in the manifest")}

    def test_a_run_that_is_missing_also_from_the_tables(self, content):
        shutil.rmtree(content / f"{BASE}/runs/{MC_RUN}")
        config, planned = read_json(content / STUDY_JSON), read_json(content / BASE / "plan.json")
        for topic in ("scores", "summary", "tables"):
            regenerate.STEPS[topic](content, config, planned, content)
        path = forged(content, commits={COMMIT: 3})
        lacking = lost(f"{BASE}/runs/{MC_RUN}")
        found = failures(path)
        assert found.keys() == {"complete", "problems"} and found["complete"] == lacking
        checks = {check.topic: check for check in verify(path, partial=True)}
        assert {check.status for check in checks.values()} == {"ok", "note"}
        assert checks["complete"].culprits == lacking

    def test_another_format(self, content):
        change(content / MANIFEST, format=2)
        found = failures(pack(content))
        assert found["manifest"] == (f"{MANIFEST}: format 2; this mcgrpo reads format 1",)

    @pytest.mark.parametrize(
        ("part", "key", "value", "status", "told"),
        [
            ("versions", "mcgrpo", "0.0.9", "FAILED", "made by mcgrpo 0.0.9, this is "),
            ("versions", "pandas", "2.0", "note", "pandas: 2.0 there, "),
            ("stages", "mcgrpo.analyse.collect", "0" * 16, "note", "mcgrpo.analyse.collect: other code here"),
        ],
    )
    def test_another_version_and_as_a_note_other_code_and_packages(self, content, part, key, value, status, told):
        made_by = read_manifest(content / MANIFEST).made_by
        older = made_by | {part: made_by[part] | {key: value}}
        check = next(check for check in verify(forged(content, made_by=older)) if check.topic == "version")
        assert check.status == status and any(line.startswith(told) for line in (check.finding, *check.culprits))

    @pytest.mark.parametrize(
        ("theirs", "told"),
        [("a\nb\n", ""), ("a\nc\n", "line 2 differs"), ("a\n", "line 2 differs"), ("a\nb\n\n", "one is longer"),
         ("a\nb", "one is longer"), (None, "not in the archive")],
    )  # fmt: skip
    def test_in_which_line_a_file_differs(self, tmp_path, theirs, told):
        (tmp_path / "mine").write_text("a\nb\n")
        if theirs is not None:
            (tmp_path / "theirs").write_text(theirs)
        assert difference(tmp_path / "mine", tmp_path / "theirs") == told

    def test_every_failed_check_in_the_verdict(self, content, tmp_path):
        (content / "envs/gpu.txt").write_text("torch")
        path = pack(content)
        done = run("mcgrpo.cli", "verify", path, folder=tmp_path)
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1] == f"{path}: FAILED: files"

    def test_an_archive_that_is_not_there(self, monkeypatch):
        monkeypatch.setattr("sys.argv", ["verify", "none.tar.xz"])
        memory = resource.getrlimit(resource.RLIMIT_AS)
        try:
            with pytest.raises(SystemExit, match=r"^error: none\.tar\.xz: No such file or directory$"):
                main()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, memory)  # of this process, which runs other tests
