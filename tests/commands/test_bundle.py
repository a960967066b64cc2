"""The evidence bundle of a real study, as small as studies get: four trainings of two steps, run once for all tests."""

import os
import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from evidence_archives import (
    BASE,
    COMMIT,
    FILES,
    MC_RUN,
    STUDY,
    failed,
    failures,
    listed,
    lost,
    run,
)  # fmt: skip

from mcgrpo.commands.evidence import archive
from mcgrpo.commands.evidence.bundle import bundle
from mcgrpo.commands.evidence.contents import contents
from mcgrpo.commands.evidence.manifest import MANIFEST, SUMS, read_manifest
from mcgrpo.files import read_json, write_json
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.plan import as_json

pytestmark = pytest.mark.slow


@pytest.fixture
def copied(study, tmp_path, monkeypatch):
    """The study in a folder of its own, to be changed, as the working directory."""
    monkeypatch.chdir(shutil.copytree(study, tmp_path / "copy"))
    return Path.cwd()


class TestABundle:
    def test_is_the_same_to_the_byte_for_the_same_study(self, packed, copied):
        for path in sorted(copied.rglob("*"), reverse=True):
            os.utime(path)
        path, _ = bundle(FILES, Path("again.tar.xz"), completions=True)
        assert path.read_bytes() == packed.read_bytes()

    def test_is_checked_by_coreutils_too(self, content):
        done = subprocess.run(["sha256sum", "--check", "--strict", SUMS], cwd=content, capture_output=True, text=True)
        assert done.returncode == 0
        assert done.stdout.count(": OK") == len(listed(content)) - 1

    def test_has_everything_that_a_number_comes_from(self, content):
        for name in (
            f"{BASE}/runs/{MC_RUN}/metrics.jsonl", f"{BASE}/runs/{MC_RUN}/run.json",
            f"{BASE}/grades/{MC_RUN}/two-step.jsonl", f"{BASE}/grades/{MC_RUN}/two-step.released.jsonl",
            f"{BASE}/rollout-grades/toy/none/G0/default/seed0/two-step.jsonl",
            f"{BASE}/flips/toy/none/G0/default/seed0/two-step.jsonl",
            f"{BASE}/plan.json", f"{BASE}/scores.csv", f"{BASE}/values.jsonl", f"{BASE}/curves.csv",
            f"{BASE}/summary.csv", f"{BASE}/gains.csv", f"{BASE}/contrasts.csv", f"{BASE}/overlap.json",
            "resources/data/tiny/two-step.audit.json", "reports/tiny/tables.tex",
            "reports/tiny/tables.md", "reports/tiny/claims.csv",
            "study/0-base.yaml", "study/1-title.yaml", "study/study.json",
            "config/claims.yaml", "config/published.csv", "envs/cpu.txt", "envs/gpu.txt",
        ):  # fmt: skip
            assert (content / name).is_file(), name
        manifest = read_manifest(content / MANIFEST)
        assert manifest.title == "Tiny study"
        assert manifest.commits == {COMMIT: 4} and manifest.trainings == 4 and manifest.missing == []
        assert manifest.versions[0]["runs"] == 4 and "trl" in manifest.versions[0]["versions"]
        assert not [name for name in listed(content) if "model" in name]

    def test_has_whatever_a_run_has_written(self, copied):
        folder = copied / BASE / "runs" / MC_RUN
        (folder / "notes.txt").write_text("by hand\n")
        (folder / ".half-written.tmp").write_text("{")
        _, made = bundle(FILES)
        assert f"{BASE}/runs/{MC_RUN}/notes.txt" in made.files
        assert not [name for name in made.files if "half-written" in name]

    @pytest.mark.parametrize("tables", [{"steps": 1, "prompts": 2, "oracle": 4}, None])
    def test_has_the_rollouts_that_were_recorded_though_the_study_has_other_rollout_tables_since(self, copied, tables):
        Path("title.yaml").write_text(yaml.safe_dump({"title": "Tiny study", "rollout_tables": tables}))
        path, made = bundle(FILES)
        assert f"{BASE}/runs/{MC_RUN}/rollouts.jsonl" in made.files and made.missing == []
        assert not failures(path)

    def test_of_trainings_without_rollouts_is_whole_though_the_study_has_rollout_tables_since(self, copied):
        for record in copied.glob(f"{BASE}/runs/**/run.json"):
            content = read_json(record)
            if "sums" in content["outcome"]:
                (record.parent / "rollouts.jsonl").unlink()
                del content["outcome"]["sums"]["rollouts.jsonl"]
                write_json(record, {**content, "outcome": {**content["outcome"], "rollout_tables": None}})
        path, made = bundle(FILES)
        assert made.missing == [] and not failures(path)

    def test_has_the_locks_of_the_study_files(self, copied):
        (copied / "base.lock.yaml").write_text("{}\n")
        path, made = bundle(FILES)
        assert "study/0-base.lock.yaml" in made.files
        assert not failures(path)

    def test_has_the_modules_of_its_own_estimators_and_what_they_import_from_beside_them(self, copied):
        modules = {
            "mine": "from helpers_of_mine import centre\n",
            "helpers_of_mine": "import deeper\n",
            "deeper": "",
            "other": "",
        }
        for name, text in modules.items():
            (copied / f"{name}.py").write_text(text)
        config = study_file.read(FILES)
        config["training"]["estimator"] = "mine:midrange"
        found = contents(config, [], as_json(config)).files
        own = {name: path for name, path in found.items() if name.startswith("study/")}
        assert own == {f"study/{name}.py": Path(f"{name}.py") for name in ("mine", "helpers_of_mine", "deeper")}

    def test_names_the_modules_of_a_package_from_its_own_folder(self, copied):
        for name, text in {"lab/__init__": "", "lab/own": "from lab.parts import centre\n", "lab/parts": ""}.items():
            path = Path(f"{name}.py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        config = study_file.read(FILES)
        config["training"]["estimator"] = "lab.own:midrange"
        found = contents(config, [], as_json(config)).files
        assert {name for name in found if name.startswith("study/")} == {"study/lab/own.py", "study/lab/parts.py"}

    def test_of_an_unfinished_study_without_scores_is_verified_as_such(self, copied):
        (copied / BASE / "scores.csv").unlink()
        (copied / "reports/tiny/tables.md").unlink()
        path, made = bundle(FILES)
        lacking = (f"{BASE}/scores.csv: no such file", "reports/tiny/tables.md: no such file")
        assert made.missing == list(lacking)
        assert not failures(path, partial=True)
        found = failures(path)
        assert found["scores"] == (f"{BASE}/scores.csv: not in the archive",) and found["complete"] == lacking

    def test_has_completions_only_where_asked(self, copied):
        path, made = bundle(FILES)
        assert not [name for name in made.files if "completions" in name or "rollouts/" in name]
        assert not failures(path)

    def test_has_the_record_of_a_training_that_failed(self, copied):
        run_folder = copied / BASE / "runs" / MC_RUN
        shutil.move(run_folder, copied / BASE / "unfinished" / MC_RUN)
        path, made = bundle(FILES)
        assert f"{BASE}/unfinished/{MC_RUN}/run.json" in made.files
        assert made.missing == [f"{BASE}/runs/{MC_RUN}/run.json: no such file"]
        assert failed(path, "complete") == lost(f"{BASE}/runs/{MC_RUN}")

    def test_names_grades_that_are_older_than_their_training(self, copied):
        grades = f"{BASE}/grades/{MC_RUN}/two-step.jsonl"
        os.utime(grades, (0, 0))
        path, made = bundle(FILES)
        assert made.missing == [f"{grades}: older than the training that it should be of"]
        assert failed(path, "complete") == tuple(made.missing)

    def test_of_a_study_that_was_not_run_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("base.yaml").write_text(yaml.safe_dump(STUDY))
        with pytest.raises(StudyError, match="nothing of study 'tiny' has been run here"):
            bundle(["base.yaml"])

    def test_of_other_study_files_than_were_run_is_refused(self, copied):
        Path("other.yaml").write_text("seeds: [0]\n")
        with pytest.raises(StudyError, match=r"plan\.json: runs differs from these study files"):
            bundle([*FILES, "other.yaml"])

    def test_is_reported_in_two_lines(self, study, tmp_path):
        done = run("mcgrpo.cli", "bundle", "base.yaml", "title.yaml", "--output", tmp_path / "a.tar.xz", folder=study)
        assert done.returncode == 0
        lines = done.stdout.splitlines()
        assert re.fullmatch(rf"{tmp_path}/a\.tar\.xz: \d+ files, 0\.\d+ MB, 4 of 4 trainings", lines[0])
        assert lines[1:] == [f"sha256 {archive.sha256(tmp_path / 'a.tar.xz')}"]

    def test_has_errors_of_one_line(self, study, tmp_path):
        done = run("mcgrpo.cli", "bundle", "none.yaml", folder=study)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1) and "none.yaml: no such file" in done.stderr
        done = run("mcgrpo.cli", "bundle", *FILES, "--output", "a.zip", folder=study)
        assert done.returncode == 2 and "--output a.zip: the archive is a .tar.xz" in done.stderr


def test_the_manifest_has_every_field_that_it_says(content):
    row = read_json(content / MANIFEST)
    assert row == asdict(read_manifest(content / MANIFEST))
