import json
import os
import subprocess
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, replace
from functools import partial
from signal import SIGKILL

import pytest
from collected import a_run, grades, metrics, write_run
from runs import write_sealed

from mcgrpo.analyse.collect import collect, main
from mcgrpo.analyse.curves import MEANS
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.measures import problems_hash
from mcgrpo.analyse.records import CurvePoint, Score
from mcgrpo.analyse.scored import by_cell
from mcgrpo.analyse.summarise import summarise
from mcgrpo.files import RecordError, iter_json_lines, read_json, read_jsonl, write_jsonl
from mcgrpo.records import Group
from mcgrpo.study.planned import read_plan
from mcgrpo.sums import seal

OF_TRAINING = len(MEANS) + 8
"""Measures of a training: seconds, those of a step, rollouts, what was clipped, unsteadiness, two entropies, GPUs."""
WHOLE = 3 * 2 * 6 + 2 * OF_TRAINING + 1
"""Scores of `results`: of three runs on two benchmarks, of two trainings, and one of sign flips."""


def plan(results):
    return read_plan(results / "plan.json")


def test_the_extra_rollouts_of_an_own_estimator_are_counted_in_its_groups(results):
    """Its module is not here, as it is not where somebody verifies the study."""
    planned = plan(results)
    first, *trained = planned.runs
    trained = [replace(run, estimator="of_somebody:own") for run in trained]
    planned = replace(planned, runs=[first, *trained])
    for run in trained:
        write_run(results, run, metrics())
        group = Group(1, 0, [0.0] * (run.num_generations + 3), [0.0] * (run.num_generations + 3), [], [])
        write_jsonl(results / "runs" / run.name / "groups.jsonl", [group])
    found = collect(planned, results)
    assert [score.value for score in found.scores if score.measure == "extra_rollouts"] == [3, 3]
    cells = summarise(planned, by_cell(found.scores))
    assert {cell.extra_rollouts for cell in cells if cell.method != "none"} == {3}
    write_jsonl(results / "runs" / run.name / "groups.jsonl", [])
    with pytest.raises(RecordError, match=r"groups\.jsonl: holds no groups"):
        collect(planned, results)
    (results / "runs" / run.name / "groups.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(RecordError, match=r"groups\.jsonl:1: a group has a step and rewards"):
        collect(planned, results)


def test_several_processes_give_what_one_gives_and_its_errors(results, monkeypatch):
    planned = plan(results)
    (results / "grades" / planned.runs[1].name / "others.jsonl").unlink()
    one = collect(planned, results, unfinished=True)
    monkeypatch.setattr("mcgrpo.analyse.collect._processes", lambda runs: 2)
    several = collect(planned, results, unfinished=True)
    assert len(one.missing) == 1 and several.inputs == one.inputs
    assert (several.scores, several.curves, several.missing) == (one.scores, one.curves, one.missing)
    with pytest.raises(RecordError, match=r"others\.jsonl: no such file"):
        collect(planned, results)


def test_a_process_that_is_killed_is_not_waited_for(results, monkeypatch):
    here = os.getpid()
    monkeypatch.setattr("mcgrpo.analyse.collect._processes", lambda runs: 2)
    monkeypatch.setattr(
        "mcgrpo.analyse.collect.finished_outcome", lambda *_: os.getpid() != here and os.kill(os.getpid(), SIGKILL)
    )
    with pytest.raises(BrokenProcessPool):
        collect(plan(results), results)


def test_a_study_by_hand(results):
    path = results / "runs" / a_run(seed=1).name / "run.json"
    record = read_json(path)
    write_sealed(path, record | {"outcome": record["outcome"] | {"gpus": 2}})
    found = collect(plan(results), results)
    assert len(found.scores) == WHOLE
    assert len(found.curves) == 2 * 20 and found.missing == []
    scores = {(s.method, s.seed, s.role, s.measure): s for s in found.scores}
    key = ("toy", "none", 0, "default", 0, "sums", "in", "greedy")
    values, problems = [1.0, 1.0, 0.0, 0.0], problems_hash("abcd")
    numbers = {"value": 0.5, "n": 4, "values": values, "problems": problems, "decoding": "greedy"}
    assert scores["none", 0, "in", "greedy"] == Score(*key, **numbers)
    assert scores["grpo", 1, "in", "avg@2"].values == [0.5, 1.0, 0.0, 1.0]
    assert scores["grpo", 1, "out", "avg@2"].benchmark == "others"
    assert scores["grpo", 1, "train", "seconds"] == Score(
        "toy", "grpo", 4, "default", 1, "train", "train", "seconds", value=12.5, n=20
    )
    assert ("none", 0, "train", "seconds") not in scores
    assert [scores["grpo", seed, "train", "gpus"].value for seed in (0, 1)] == [0, 2]
    flips = scores["none", 0, "flips", "mean/oracle-mean/zeros/k2"]
    assert (flips.benchmark, flips.value, flips.n) == ("sums", 0.25, 3)


@pytest.mark.parametrize(
    ("missing", "lost"),
    [
        ("grades/toy/grpo/G4/default/seed0/sums.jsonl", 6),
        ("runs/toy/grpo/G4/default/seed1/run.json", OF_TRAINING + 2 * 6),  # grades of no known training are not counted
        ("runs/toy/grpo/G4/default/seed1/metrics.jsonl", OF_TRAINING),
        ("flips/toy/none/G0/default/seed0/sums.jsonl", 1),
    ],
)
def test_a_part_of_a_study(results, missing, lost):
    (results / missing).unlink()
    found = collect(plan(results), results, unfinished=True)
    assert len(found.scores) == WHOLE - lost
    assert found.missing and all(missing in line for line in found.missing)
    with pytest.raises(RecordError, match=f"{missing}: no such file"):
        collect(plan(results), results)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"training": {"beta": 0.5}}, ": this training is not the plan's: training differs"),
        ({"outcome": {"status": "finished", "started": 0.0, "steps": 0}}, ": this training took no optimizer step"),
        ({"outcome": {"status": "failed", "started": 0.0, "steps": 3}}, ": this training has not finished"),
        (None, ":1: not valid JSON"),
    ],
)
def test_a_training_that_is_no_result_is_refused_with_its_grades(results, change, message):
    path = results / "runs" / a_run().name / "run.json"
    path.write_text(json.dumps(read_json(path) | change) if change else "{")
    seal(path)
    with pytest.raises(RecordError, match=rf"seed0/run\.json{message}"):
        collect(plan(results), results)
    found = collect(plan(results), results, unfinished=True)
    assert {score.seed for score in found.scores if score.method == "grpo"} == {1}
    assert any(f"seed0/run.json{message}" in line for line in found.missing)


def test_a_record_of_a_finished_training_that_somebody_changed_is_refused(results):
    path = results / "runs" / a_run().name / "run.json"
    path.write_text(path.read_text().replace('"seconds": 12.5', '"seconds": 10.5'))
    with pytest.raises(RecordError, match=r"seed0/run\.json has changed since it was written .* is trained again"):
        collect(plan(results), results)


def test_the_record_of_an_older_version_is_taken_once_its_sum_is_there(results):
    path = results / "runs" / a_run().name / "run.json"
    path.with_name("run.json.sha256").unlink()
    with pytest.raises(RecordError, match=r"seed0/run\.json: its sum, run\.json\.sha256, is not beside it") as told:
        collect(plan(results), results)
    remedy = str(told.value).partition("wrote it: ")[2].rstrip(")")
    subprocess.run(remedy, shell=True, check=True, timeout=60)
    assert len(collect(plan(results), results).scores) == WHOLE


@pytest.mark.parametrize(("kind", "name"), [("data", "sums"), ("model", "toy")])
@pytest.mark.parametrize("unfinished", [False, True])
def test_trainings_with_other_files_of_one_data_set_or_model_are_refused(results, kind, name, unfinished):
    runs = [a_run(seed=0), a_run(seed=1)]
    for run, total in zip(runs, ["aaa", "bbb"], strict=True):
        path = results / "runs" / run.name / "run.json"
        record = read_json(path)
        record["outcome"][kind] = {"path": "there", "sha256": total} | ({"rows": 960} if kind == "data" else {})
        write_sealed(path, record)
    message = rf"{runs[0].name} \(1 in all\) had other files of {kind} '{name}' than {runs[1].name} \(1 in all\)"
    with pytest.raises(RecordError, match=message):
        collect(plan(results), results, unfinished)


def regraded(results, change, *runs, benchmark="sums"):
    """The grades of these runs on a benchmark, each row changed."""
    for run in runs:
        path = results / f"grades/{run.name}/{benchmark}.jsonl"
        write_jsonl(path, [change(row) for _, row in iter_json_lines(path)])


class TestProblems:
    """Runs that are compared were asked the same questions."""

    @pytest.fixture
    def asked(self, results):
        """Each grade has a gold and the sum of its prompt, as those that are made of completions."""
        for benchmark in ("sums", "others"):
            add = lambda row: row | {"answer": row["id"], "prompt_sha256": f"{row['id']}?"}  # noqa: E731
            regraded(results, add, a_run("none"), a_run(), a_run(seed=1), benchmark=benchmark)
        return results

    def test_are_the_same_in_all_runs(self, asked):
        assert len(collect(plan(asked), asked).scores) == WHOLE

    @pytest.mark.parametrize("unfinished", [False, True])
    @pytest.mark.parametrize(
        ("change", "kind"),
        [({"answer": "8"}, "golds of 'sums'"), ({"prompt_sha256": "another"}, "prompts of 'sums in toy'")],
    )
    def test_with_other_golds_or_prompts_are_refused(self, asked, change, kind, unfinished):
        regraded(asked, lambda row: row | (change if row["id"] == "b" else {}), a_run(seed=1))
        message = rf"{a_run(seed=1).name} \(1 in all\) had other {kind} than .* \(2 in all\): remove the completions"
        with pytest.raises(RecordError, match=message):
            collect(plan(asked), asked, unfinished)

    def test_of_another_chat_template_have_other_prompts_by_right(self, asked):
        planned = plan(asked)
        *others, run = planned.runs
        run = replace(run, training=run.training | {"chat_template_kwargs": {"enable_thinking": False}})
        write_run(asked, run, metrics())
        for benchmark in ("sums", "others"):
            regraded(asked, lambda row: row | {"prompt_sha256": "another"}, a_run(seed=1), benchmark=benchmark)
        assert len(collect(replace(planned, runs=[*others, run]), asked).scores) == WHOLE

    def test_have_one_gold_in_a_file(self, asked):
        regraded(asked, lambda row: row | {"answer": str(row["sample"])}, a_run(seed=1))
        with pytest.raises(RecordError, match=r"seed1/sums\.jsonl: completions of 'a' have two golds or two prompts"):
            collect(plan(asked), asked)


def test_the_benchmark_that_selects_a_checkpoint_is_compared_as_the_data_of_trainings_are(results):
    for run, key, total in ((a_run(), "test", "aaa"), (a_run(seed=1), "data", "bbb")):
        record = read_json(path := results / "runs" / run.name / "run.json")
        record["outcome"][key] = {"path": "sums.jsonl", "sha256": total, "rows": 960}
        write_sealed(path, record)
    with pytest.raises(RecordError, match="had other files of data 'sums' than"):
        collect(plan(results), results)


def test_grades_of_an_earlier_training_are_not_counted_in_a_part_of_a_study(results):
    write_run(results, a_run(), metrics(), started=time.time() + 60)
    found = collect(plan(results), results, unfinished=True)
    assert any("seed0/sums.jsonl: older than the training that it should be of" in line for line in found.missing)
    assert {score.benchmark for score in found.scores if (score.method, score.seed) == ("grpo", 0)} == {"train"}


def test_sign_flips_that_somebody_changed_are_refused(results):
    path = results / f"flips/{a_run('none').name}/sums.jsonl"
    seal(path)
    path.write_text(path.read_text().replace("0.5", "0.4"))
    with pytest.raises(RecordError, match=r"sums\.jsonl has changed since it was written"):
        collect(plan(results), results)


def test_each_protocol_is_measured_by_its_own_verdicts(results):
    both = replace(plan(results), grading=["paper", "released", "robust"])
    with pytest.raises(RecordError, match=r"jsonl:1: no 'verdict_released', .* remove the file"):
        collect(both, results)
    for benchmark in ("sums", "others"):
        others = {"verdict_released": "wrong", "verdict_robust": "correct"}
        regraded(results, partial(dict, **others), *both.runs, benchmark=benchmark)
    scores = {(s.method, s.seed, s.benchmark, s.measure): s.value for s in collect(both, results).scores}
    assert scores["grpo", 0, "sums", "greedy"] == 0.5
    assert scores["grpo", 0, "sums", "released-greedy"] == scores["grpo", 0, "sums", "released-any@2"] == 0.0
    assert scores["grpo", 0, "sums", "robust-greedy"] == scores["grpo", 0, "sums", "robust-avg@2"] == 1.0


def test_how_long_completions_could_be_comes_from_the_record_of_them(results):
    """`grade` carries these columns through; in an older file there are none."""
    for run in plan(results).runs:
        tokens = {"max_new_tokens": 3555, "asked_new_tokens": 8000}
        path = results / "grades" / run.name / "sums.jsonl"
        write_jsonl(path, [asdict(grade) | tokens for grade in grades()])
    scores = collect(plan(results), results).scores
    found = {(s.benchmark, s.measure, s.value) for s in scores if s.measure.endswith("new_tokens")}
    assert found == {("sums", "max_new_tokens", 3555.0), ("sums", "asked_new_tokens", 8000.0)}
    cells = summarise(plan(results), by_cell(scores))
    assert {cell.mean for cell in cells if cell.measure == "max_new_tokens"} == {3555.0}


def test_how_long_rollouts_for_sign_flips_could_be_comes_from_their_record(results):
    run = a_run("none")
    tokens = {"max_new_tokens": 40, "asked_new_tokens": 64}
    write_jsonl(results / f"rollout-grades/{run.name}/sums.jsonl", [asdict(grade) | tokens for grade in grades()])
    found = {s.measure: s.value for s in collect(plan(results), results).scores if s.role == "flips"}
    assert (found["max_new_tokens"], found["asked_new_tokens"]) == (40.0, 64.0)


def test_the_command_writes_both_files_or_ends_in_one_line(results, capsys):
    main(["--results", str(results)])
    assert capsys.readouterr().out == f"{WHOLE} scores and 40 steps\n"
    assert len(read_jsonl(results / "scores.jsonl", Score)) == WHOLE
    assert len(read_frame(results / "curves.csv", CurvePoint)) == 40
    (results / "scores.jsonl").unlink()
    (results / "grades/toy/grpo/G4/default/seed0/sums.jsonl").write_text("")
    with pytest.raises(SystemExit, match=r"^error: .*sums\.jsonl: no grades$"):
        main(["--results", str(results)])
    assert not (results / "scores.jsonl").exists()
