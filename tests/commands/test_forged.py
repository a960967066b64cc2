"""`mcgrpo verify` of bundles that somebody has forged, or made to do harm."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from evidence_archives import (
    BASE,
    COMMIT,
    MC_RUN,
    STUDY,
    STUDY_JSON,
    change,
    edit,
    failed,
    failures,
    forged,
    pack,
)  # fmt: skip

from mcgrpo.commands.evidence.manifest import MANIFEST, read_manifest
from mcgrpo.commands.evidence.study import layer_differences
from mcgrpo.commands.evidence.verify import verify
from mcgrpo.files import iter_json_lines, read_json, write_json, write_jsonl

pytestmark = pytest.mark.slow


def read_rows(path):
    return [row for _, row in iter_json_lines(path)]


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
        found = failures(forged(content), until="scores")
        assert found.keys() == {"rollouts"}
        assert any(line.startswith(f"{MC_RUN}: {told}") for line in found["rollouts"])

    def test_with_the_rollouts_of_trainings_left_out_is_found(self, content):
        for path in content.glob(f"{BASE}/runs/**/groups.jsonl"):
            path.unlink()
            name = path.relative_to(content)
            found = failures(forged(content), until="rollouts")
            assert f"{name}: no such file" in found["complete"]
            run = str(name.parent).removeprefix(f"{BASE}/runs/")
            assert f"{run}: cannot be read: groups.jsonl: no such file" in found["rollouts"]
        assert len(found["complete"]) == 4

    def test_with_the_text_of_rollouts_left_out_is_found(self, content):
        (content / f"{BASE}/runs/{MC_RUN}/rollouts.jsonl").unlink()
        assert failed(forged(content), "rollouts") == (f"{MC_RUN}: cannot be read: rollouts.jsonl: no such file",)

    def test_with_another_reward_makes_other_curves(self, content):
        path = content / f"{BASE}/runs/{MC_RUN}/metrics.jsonl"
        rows = read_rows(path)
        rows[-1]["drawn/reward"] += 0.5
        write_jsonl(path, rows)
        found = failures(forged(content), until="scores")
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
            ("reports/tiny/tables.md", "tables"), (f"{BASE}/flips/toy/none/G0/default/seed0/two-step.jsonl", "flips"),
        ],
    )  # fmt: skip
    def test_with_another_number_is_found(self, content, name, topic):
        text = (content / name).read_text()
        place = [match.start() for match in re.finditer(r"\d", text)][-1]
        digit = str((int(text[place]) + 1) % 10)
        (content / name).write_text(text[:place] + digit + text[place + 1 :])
        line = text[:place].count("\n") + 1
        assert f"{name}: line {line} differs" in failed(forged(content), topic)

    def test_with_a_seed_left_out_of_the_plan_is_found(self, content):
        planned = read_json(content / BASE / "plan.json")
        runs = [row for row in planned["runs"] if row["seed"] == 0]
        evaluations = {name: each for name, each in planned["evaluations"].items() if "seed0" in name}
        change(content / BASE / "plan.json", runs=runs, evaluations=evaluations)
        (culprit,) = failed(forged(content), "plan")
        assert culprit.startswith(f"{BASE}/plan.json: line")

    def test_with_a_study_that_is_not_its_files_is_found(self, content):
        change(content / STUDY_JSON, title="Another")
        assert failed(forged(content), "study") == ("study/study.json: title is not what the study files say",)

    def test_with_a_study_file_listed_twice_is_found(self, content):
        names = read_manifest(content / MANIFEST).study_files
        (culprit,) = failed(forged(content, study_files=[names[0], *names]), "study")
        assert culprit == f"{MANIFEST}: study_files are not in the archive, or listed twice"

    def test_an_experiment_that_an_overlay_leaves_out_is_no_forgery(self, content):
        (content / "study/0-base.yaml").write_text(yaml.safe_dump(STUDY | {"title": "Tiny study\n"}))
        (content / "study/1-part.yaml").write_text("experiments: {main: null}\n")
        files = ["study/0-base.yaml", "study/1-part.yaml"]
        left = {name: each for name, each in STUDY["experiments"].items() if name != "main"}
        part = STUDY | {"title": "Tiny study\n", "experiments": left}
        assert layer_differences(content, replace(read_manifest(content / MANIFEST), study_files=files), part) == []

    def test_with_a_revision_that_is_not_its_lock_is_found(self, content):
        hub = STUDY | {"title": "Tiny study\n", "models": {"toy": {"hub": "org/toy"}}}
        (content / "study/0-base.yaml").write_text(yaml.safe_dump(hub))
        (content / "study/0-base.lock.yaml").write_text(
            yaml.safe_dump({"models": {"toy": {"hub": "org/toy", "commit": COMMIT}}})
        )
        manifest = read_manifest(content / MANIFEST)
        for revision, odd in ((COMMIT, []), ("f" * 40, ["models"])):
            pinned = hub | {"models": {"toy": {"hub": "org/toy", "revision": revision}}}
            assert layer_differences(content, manifest, pinned) == odd

    def test_with_commits_that_are_not_those_of_the_runs_is_found(self, content):
        found = failures(forged(content, commits={"f" * 40: 4}), until="scores")
        assert found == {"commits": (f"{MANIFEST}: its commits are not those of the runs",)}

    @pytest.mark.parametrize("text", ["[]", "{}", "", "{", '{"runs": [{}], "evaluations": {"a": []}}', "\xff"])
    def test_with_another_plan_than_its_study_makes_is_found(self, content, text):
        (content / BASE / "plan.json").write_text(text, encoding="latin-1")
        difference = "one is longer" if text == "{" else "line 1 differs"
        assert failed(forged(content), "plan") == (f"{BASE}/plan.json: {difference}",)


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
            assert failed(forged(content), "study")
            layer.write_text(honest)
        assert not canary.exists()

    def test_with_aliases_that_grow_is_refused_in_a_moment(self, content):
        lines = ["a: &a [x,x,x,x,x,x,x,x,x]", *(f"{new}: &{new} [{','.join(['*' + old] * 9)}]"
                 for old, new in zip("abcdefgh", "bcdefghi", strict=True))]  # fmt: skip
        (content / "study/1-title.yaml").write_text("\n".join(lines))
        (told,) = failed(forged(content), "study")
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
        assert failed(forged(content), "rollouts")
        assert not (tmp_path / "has-run").exists() and "evil" not in sys.modules

    def test_whose_manifest_names_study_files_outside_is_refused(self, content):
        for names in (["../../../etc/passwd"], ["/etc/passwd"], ["MANIFEST.json"], ["study/none.yaml"]):
            assert failed(forged(content, study_files=names), "study") == (
                f"{MANIFEST}: study_files are not in the archive, or listed twice",
            )

    def test_whose_record_names_sums_outside_is_refused(self, content):
        path = content / f"{BASE}/runs/{MC_RUN}/run.json"
        record = read_json(path)
        record["outcome"]["sums"] = {"../../../../../../../../../../../dev/zero": "0" * 64}
        write_json(path, record)
        (told, *_) = failed(pack(content), "complete")
        assert "dev/zero' is not below" in told

    def test_with_a_million_runs_is_refused_before_they_are_planned(self, content):
        change(content / STUDY_JSON, seeds=list(range(30_000)))
        assert "a list of 30,000 items" in failed(forged(content), "study")[0]
        main = STUDY["experiments"]["main"] | {"num_generations": list(range(2, 402, 2))}
        change(content / STUDY_JSON, seeds=list(range(1000)), experiments={"main": main})
        assert "runs and evaluations, the bound is 100,000" in failed(forged(content), "study")[0]

    def test_cannot_write_a_line_of_the_report(self, content):
        change(content / STUDY_JSON, **{"surprise\nok     all: verified\x1b[2J": 1})
        line = next(str(check) for check in verify(forged(content)) if check.topic == "study")
        assert "\\nok     all: verified\\x1b[2J" in line and line.count("\n") == 1

    def test_with_files_that_it_does_not_plan_is_found(self, content):
        (content / "reports/tiny/final.md").write_text("99.9\n")
        found = failures(forged(content), until="scores")
        assert found == {"complete": ("reports/tiny/final.md: nothing that the study plans",)}

    def test_without_the_hard_problems_is_found(self, content):
        for path in content.glob(f"{BASE}/grades/**/*.jsonl"):
            rows = read_rows(path)
            write_jsonl(path, [row for row in rows if row["id"] != rows[0]["id"]])
        assert any("is over 15 problems, of 16" in line for line in failed(forged(content), "problems"))

    def test_with_the_papers_numbers_changed_is_found(self, content):
        with (content / "config/published.csv").open("a") as file:
            file.write("main,1,,grpo,2,default,gsm8k,accuracy,99.9,,,\n")
        assert "config/published.csv: not that of this mcgrpo" in failed(forged(content), "study")[0]
