"""The evidence bundle of a real study, as small as studies get: four trainings of two steps, run once for all tests."""

import os
import re
import shutil
import subprocess
import sys
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
    change,
    edit,
    failures,
    finished_study,
    forged,
    listed,
    pack,
    packed_study,
    run,
    set_commit,
    unpacked_study,
)  # fmt: skip

from mcgrpo.commands.evidence import archive, regenerate
from mcgrpo.commands.evidence.bundle import bundle
from mcgrpo.commands.evidence.contents import contents
from mcgrpo.commands.evidence.manifest import MANIFEST, SUMS, read_manifest
from mcgrpo.commands.evidence.study import layer_differences
from mcgrpo.commands.evidence.verify import difference, verify
from mcgrpo.files import iter_json_lines, read_json, write_json, write_jsonl
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.plan import as_json

pytestmark = pytest.mark.slow
STUDY_JSON = "study/study.json"


def lost(run):
    """What is said of a run that is not there."""
    return tuple(f"{run}/{name}.{kind}: no such file" for name, kind in
                 (("run", "json"), ("metrics", "jsonl"), ("groups", "jsonl")))  # fmt: skip


def read_rows(path):
    return [row for _, row in iter_json_lines(path)]


@pytest.fixture(scope="session")
def study():
    return finished_study()


@pytest.fixture(scope="session")
def packed():
    return packed_study()


@pytest.fixture
def content(tmp_path):
    return unpacked_study(tmp_path)


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
            "reports/tiny/values.tex", "reports/tiny/claims.csv",
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
        (folder / "rollouts.jsonl").write_text('{"step": 1}\n')
        (folder / ".half-written.tmp").write_text("{")
        _, made = bundle(FILES)
        assert f"{BASE}/runs/{MC_RUN}/rollouts.jsonl" in made.files
        assert not [name for name in made.files if "half-written" in name]

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
        assert failures(path)["complete"] == lost(f"{BASE}/runs/{MC_RUN}")

    def test_names_grades_that_are_older_than_their_training(self, copied):
        grades = f"{BASE}/grades/{MC_RUN}/two-step.jsonl"
        os.utime(grades, (0, 0))
        path, made = bundle(FILES)
        assert made.missing == [f"{grades}: older than the training that it should be of"]
        assert failures(path)["complete"] == tuple(made.missing)

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


class TestAWholeArchive:
    def test_is_verified(self, packed, tmp_path):
        done = run("mcgrpo.cli", "verify", packed, "--regrade", folder=tmp_path)
        *checks, verdict = done.stdout.splitlines()
        assert done.returncode == 0, done.stdout
        assert verdict == f"{packed}: verified"
        assert [line.split()[:2] for line in checks] == [
            ["ok", topic]
            for topic in ("archive", "manifest", "files", "version", "study", "complete", "commits",
                          "rollouts", "grades", *regenerate.STEPS, "problems", "again")
        ]  # fmt: skip
        assert list(tmp_path.iterdir()) == []

    def test_is_verified_without_snakemake_trl_or_a_network(self, packed, tmp_path):
        code = (
            "import runpy, socket, sys\n"
            "class Absent:\n"
            "    def find_spec(name, *_):\n"
            "        if name.split('.')[0] in ('snakemake', 'trl', 'transformers', 'accelerate', 'mlflow'):\n"
            "            raise ModuleNotFoundError(name, name=name)\n"
            "sys.meta_path.insert(0, Absent)\n"
            "socket.socket.connect = None\n"
            f"sys.argv = ['verify', {str(packed)!r}]\n"
            "runpy.run_module('mcgrpo.commands.evidence.verify', run_name='__main__')\n"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "ok     study     tiny: 0-base.yaml, 1-title.yaml" in done.stdout

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
        assert failures(pack(content))["files"] == (f"{name}: not the SHA-256 of the manifest",)

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
        assert failures(pack(content)) == {"manifest": (f"its layout: {differ}",)}


class TestAForgedArchive:
    """Its manifest fits what was changed, so that only what the numbers come from can tell."""

    def test_with_another_verdict_makes_other_tables(self, content):
        edit(content / f"{BASE}/grades/{MC_RUN}/two-step.jsonl", '"verdict": "unparseable"', '"verdict": "correct"')
        found = failures(forged(content), regrade=True)
        assert found.keys() == {"grades", "scores", "summary", "tables"}
        assert found["grades"] == (f"{BASE}/grades/{MC_RUN}/two-step.jsonl: line 1 differs",)
        assert any(line.startswith("reports/tiny/tables.csv: line") for line in found["tables"])

    @pytest.mark.parametrize(
        ("old", "new", "told"),
        [
            ('"rewards":[0.0', '"rewards":[1.0', "groups.jsonl: step 1: group 0: its advantages are not those of its"),
            ('"rewards":[0.0', '"rewards":[null', "metrics.jsonl: step 1: drawn/frac_unscorable is 0.0, by"),
            ('"kept":[0', '"kept":[1', "groups.jsonl: step 1: group 0: 3 rollouts are kept of G=2"),
            ('"advantages":[0.0,', '"advantages":[', "cannot be read: groups.jsonl: step 1: not as many advantages"),
            ('{"step":1', '{"step":3', "groups.jsonl: step 1: its groups from 0 on are not there"),
            ('"advantages":[0.0', '"advantages":[7.0', "groups.jsonl: step 1: group 0: its advantages are not those"),
        ],
    )  # fmt: skip
    def test_with_other_rollouts_disagrees_with_the_metrics(self, content, old, new, told):
        edit(content / f"{BASE}/runs/{MC_RUN}/groups.jsonl", old, new)
        found = failures(forged(content))
        assert found.keys() == {"rollouts"}
        assert any(line.startswith(f"{MC_RUN}: {told}") for line in found["rollouts"])

    def test_with_the_rollouts_of_trainings_left_out_is_found(self, content):
        for path in content.glob(f"{BASE}/runs/**/groups.jsonl"):
            path.unlink()
            name = path.relative_to(content)
            found = failures(forged(content))
            assert f"{name}: no such file" in found["complete"]
            run = str(name.parent).removeprefix(f"{BASE}/runs/")
            assert f"{run}: cannot be read: groups.jsonl: no such file" in found["rollouts"]
        assert len(found["complete"]) == 4

    def test_with_another_reward_makes_other_curves(self, content):
        path = content / f"{BASE}/runs/{MC_RUN}/metrics.jsonl"
        rows = read_rows(path)
        rows[-1]["drawn/reward"] += 0.5
        write_jsonl(path, rows)
        found = failures(forged(content))
        assert found["rollouts"] == (
            f"{MC_RUN}: metrics.jsonl: step 2: drawn/reward is 0.5, by groups.jsonl it is 0.0",
        )
        curves, scores = found["scores"]
        assert curves == f"{BASE}/curves.csv: line 9 differs" and scores.startswith(f"{BASE}/scores.csv")

    @pytest.mark.parametrize(
        ("name", "topic"),
        [
            (f"{BASE}/values.jsonl", "scores"), (f"{BASE}/summary.csv", "summary"),
            ("reports/tiny/tables.tex", "tables"), ("reports/tiny/claims.md", "tables"),
            ("reports/tiny/values.tex", "tables"), (f"{BASE}/flips/toy/none/G0/default/seed0/two-step.jsonl", "flips"),
        ],
    )  # fmt: skip
    def test_with_another_number_is_found(self, content, name, topic):
        text = (content / name).read_text()
        place = [match.start() for match in re.finditer(r"\d", text)][-1]
        digit = str((int(text[place]) + 1) % 10)
        (content / name).write_text(text[:place] + digit + text[place + 1 :])
        line = text[:place].count("\n") + 1
        assert f"{name}: line {line} differs" in failures(forged(content))[topic]

    def test_with_a_seed_left_out_of_the_plan_is_found(self, content):
        planned = read_json(content / BASE / "plan.json")
        runs = [row for row in planned["runs"] if row["seed"] == 0]
        evaluations = {name: each for name, each in planned["evaluations"].items() if "seed0" in name}
        change(content / BASE / "plan.json", runs=runs, evaluations=evaluations)
        (culprit,) = failures(forged(content))["plan"]
        assert culprit.startswith(f"{BASE}/plan.json: line")

    def test_with_a_study_that_is_not_its_files_is_found(self, content):
        change(content / STUDY_JSON, title="Another")
        assert failures(forged(content))["study"] == ("study/study.json: title is not what the study files say",)

    def test_with_a_study_file_listed_twice_is_found(self, content):
        names = read_manifest(content / MANIFEST).study_files
        (culprit,) = failures(forged(content, study_files=[names[0], *names]))["study"]
        assert culprit == f"{MANIFEST}: study_files are not in the archive, or listed twice"

    def test_with_a_revision_that_is_not_its_lock_is_found(self, content):
        hub = STUDY | {"title": "Tiny study\n", "models": {"toy": {"hub": "org/toy"}}}
        (content / "study/0-base.yaml").write_text(yaml.safe_dump(hub))
        (content / "study/0-base.lock.yaml").write_text(yaml.safe_dump({"models": {"toy": COMMIT}}))
        manifest = read_manifest(content / MANIFEST)
        for revision, odd in ((COMMIT, []), ("f" * 40, ["models"])):
            pinned = hub | {"models": {"toy": {"hub": "org/toy", "revision": revision}}}
            assert layer_differences(content, manifest, pinned) == odd

    def test_with_commits_that_are_not_those_of_the_runs_is_found(self, content):
        found = failures(forged(content, commits={"f" * 40: 4}))
        assert found == {"commits": (f"{MANIFEST}: its commits are not those of the runs",)}

    @pytest.mark.parametrize("text", ["[]", "{}", "", "{", '{"runs": [{}], "evaluations": {"a": []}}', "\xff"])
    def test_with_another_plan_than_its_study_makes_is_found(self, content, text):
        (content / BASE / "plan.json").write_text(text, encoding="latin-1")
        difference = "one is longer" if text == "{" else "line 1 differs"
        assert failures(forged(content))["plan"] == (f"{BASE}/plan.json: {difference}",)


class TestAHostileStudy:
    """What would run, write elsewhere or hide, if an archive were believed."""

    def test_with_code_in_its_study_file_is_refused_and_nothing_runs(self, content, tmp_path):
        canary = tmp_path / "has-run"
        touch = f"__import__('pathlib').Path({str(canary)!r}).touch()"
        for text in (
            f'__use_yte__: true\n__definitions__:\n  - "{touch}"\n',
            f"!!python/object/apply:eval ['{touch}']",
        ):
            layer = content / "study/0-base.yaml"
            honest = layer.read_text()
            layer.write_text(text + honest)
            assert "study" in failures(forged(content))
            layer.write_text(honest)
        assert not canary.exists()

    def test_with_aliases_that_grow_is_refused_in_a_moment(self, content):
        lines = ["a: &a [x,x,x,x,x,x,x,x,x]", *(f"{new}: &{new} [{','.join(['*' + old] * 9)}]"
                 for old, new in zip("abcdefgh", "bcdefghi", strict=True))]  # fmt: skip
        (content / "study/1-title.yaml").write_text("\n".join(lines))
        (told,) = failures(forged(content))["study"]
        assert "stands for more than" in told

    @pytest.mark.parametrize("name", ["../..", "/tmp/tiny", "a/../../b", "", "tiny\nverified"])
    def test_of_a_name_that_is_a_path_writes_nowhere(self, content, tmp_path, monkeypatch, name):
        monkeypatch.chdir(tmp_path)
        write_json(Path("plan.json"), {"mine": True})
        change(content / STUDY_JSON, study=name)
        found = failures(forged(content, study=name))
        assert found.keys() == {"study"} and found["study"][0].startswith("study/study.json: study: ")
        assert read_json(Path("plan.json")) == {"mine": True}

    def test_that_plans_other_runs_than_it_has_is_not_verified_for_making_nothing(self, content):
        study = read_json(content / STUDY_JSON)
        experiments = {name: each | {"settings": ["other"]} for name, each in study["experiments"].items()}
        change(content / STUDY_JSON, settings={"other": study["settings"]["toy"]}, experiments=experiments)
        found = failures(forged(content))
        assert found["flips"] == ("the archive holds nothing that it is made of",)
        assert {"study", "complete", "plan", "scores", "problems", "again"} <= found.keys()

    def test_with_an_estimator_of_its_own_imports_nothing_of_it(self, content, tmp_path, monkeypatch):
        monkeypatch.chdir(content / "study")
        Path("evil.py").write_text(f"open({str(tmp_path / 'has-run')!r}, 'w')\ncentre = None\n")
        change(Path("study.json"), training=STUDY["training"] | {"estimator": "evil:centre"})
        assert "rollouts" in failures(forged(content))
        assert not (tmp_path / "has-run").exists() and "evil" not in sys.modules

    def test_whose_manifest_names_study_files_outside_is_refused(self, content):
        for names in (["../../../etc/passwd"], ["/etc/passwd"], ["MANIFEST.json"], ["study/none.yaml"]):
            assert failures(forged(content, study_files=names))["study"] == (
                f"{MANIFEST}: study_files are not in the archive, or listed twice",
            )

    def test_whose_record_names_sums_outside_is_refused(self, content):
        path = content / f"{BASE}/runs/{MC_RUN}/run.json"
        record = read_json(path)
        record["outcome"]["sums"] = {"../../../../../../../../../../../dev/zero": "0" * 64}
        write_json(path, record)
        (told, *_) = failures(pack(content))["complete"]
        assert "dev/zero' is not below" in told

    def test_with_a_million_runs_is_refused_before_they_are_planned(self, content):
        change(content / STUDY_JSON, seeds=list(range(30_000)))
        assert "a list of 30,000 items" in failures(forged(content))["study"][0]
        main = STUDY["experiments"]["main"] | {"num_generations": list(range(2, 402, 2))}
        change(content / STUDY_JSON, seeds=list(range(1000)), experiments={"main": main})
        assert "runs and evaluations, the bound is 100,000" in failures(forged(content))["study"][0]

    def test_cannot_write_a_line_of_the_report(self, content):
        change(content / STUDY_JSON, **{"surprise\nok     all: verified\x1b[2J": 1})
        (line, *_) = [str(check) for check in verify(forged(content)) if check.topic == "study"]
        assert "\\nok     all: verified\\x1b[2J" in line and line.count("\n") == 1

    def test_with_files_that_it_does_not_plan_is_found(self, content):
        (content / "reports/tiny/final.md").write_text("99.9\n")
        found = failures(forged(content))
        assert found == {"complete": ("reports/tiny/final.md: nothing that the study plans",)}

    def test_without_the_hard_problems_is_found(self, content):
        for path in content.glob(f"{BASE}/grades/**/*.jsonl"):
            rows = read_rows(path)
            write_jsonl(path, [row for row in rows if row["id"] != rows[0]["id"]])
        assert any("is over 15 problems, of 16" in line for line in failures(forged(content))["problems"])

    def test_with_the_papers_numbers_changed_is_found(self, content):
        with (content / "config/published.csv").open("a") as file:
            file.write("main,1,,grpo,2,default,gsm8k,accuracy,99.9,,,\n")
        assert "config/published.csv: not that of this mcgrpo" in failures(forged(content))["study"][0]


class TestWhatIsNamed:
    def test_trainings_of_a_dirty_work_tree_or_of_no_commit(self, content):
        set_commit(content / f"{BASE}/runs/{MC_RUN}/run.json", f"{COMMIT}-dirty")
        set_commit(content / f"{BASE}/runs/toy/grpo/G2/default/seed0/run.json", None)
        found = failures(forged(content, commits={COMMIT: 2, f"{COMMIT}-dirty": 1, "None": 1}))
        assert found == {"commits": (f"{MC_RUN}: {COMMIT}-dirty", "toy/grpo/G2/default/seed0: no commit")}

    def test_several_commits_as_a_note(self, content):
        set_commit(content / f"{BASE}/runs/{MC_RUN}/run.json", "f" * 40)
        checks = {check.topic: check for check in verify(forged(content, commits={COMMIT: 3, "f" * 40: 1}))}
        assert checks["commits"].status == "note"
        assert checks["commits"].finding == f"trainings: 3 of {COMMIT}, 1 of {'f' * 40}"

    def test_a_file_that_is_missing_or_that_no_manifest_lists(self, content):
        (content / "envs/gpu.txt").unlink()
        (content / "envs/more.txt").write_text("pip")
        found = failures(pack(content))
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
        (check,) = [check for check in verify(forged(content, made_by=older)) if check.topic == "version"]
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
        done = run("mcgrpo.cli", "verify", "none.tar.xz", folder=tmp_path)
        assert (done.returncode, done.stderr) == (1, "error: none.tar.xz: No such file or directory\n")


def test_the_manifest_has_every_field_that_it_says(content):
    row = read_json(content / MANIFEST)
    assert row == asdict(read_manifest(content / MANIFEST))
