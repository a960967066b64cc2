import json
from dataclasses import replace

import pytest
import tracked_files as files
from cells import cell as cell_of
from runs import RUN
from tracked_files import content, place, track
from training_jobs import SPEC
from transformers import AutoModelForCausalLM

from mcgrpo import cli
from mcgrpo.analyse.records import Cell, Score
from mcgrpo.data.toy.models import build
from mcgrpo.files import write_csv
from mcgrpo.tracking import cells, contents
from mcgrpo.tracking.store import Store

pytestmark = pytest.mark.slow

MEAN = replace(RUN, method="grpo", estimator="mean-std")


def cell(method, mean, budget=4, **more):
    return cell_of(method, budget, mean, **{"setting": "toy", "half": 0.1, "n": 4, "seeds": 1} | more)


@pytest.fixture
def study(tmp_path, uri, monkeypatch):
    """A study of two trainings at G=4, the mean and the median, with its scores, summary, grades and report."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    results = tmp_path / "results/mini"
    for run in (RUN, MEAN):
        finished = place(results, run).finished
        files.write(finished, run, steps=3)
        (finished / "rollouts.jsonl").write_text(json.dumps({"prompt": "1+1", "completion": "2", "kept": True}) + "\n")
        grades = results / "grades" / run.name / "sums.jsonl"
        grades.parent.mkdir(parents=True)
        grades.write_text("{}\n")
    names = ("toy", "grpo", 4, "default", 3), ("toy", "mc-grpo", 4, "default", 3)
    scores = [Score(*name, "sums", "in", "greedy", value, 4) for name, value in zip(names, (0.5, 0.75), strict=True)]
    write_csv(results / "scores.csv", Score, [*scores, Score(*names[0], "train", "train", "seconds", 9.0, 3)])
    rows = [cell("grpo", 0.5), cell("mc-grpo", 0.75, gain=(0.25, -0.1, 0.6)), cell("none", 0.25, 0)]
    write_csv(results / "summary.csv", Cell, [*rows, cell("grpo", 9.0, measure="seconds", role="train")])
    figures = tmp_path / "reports/mini/figures"
    figures.mkdir(parents=True)
    (figures / "one.png").write_bytes(b"png")
    (figures.parent / "headline.md").write_text("It does not.\n")
    return results


def opened(results):
    return Store(f"sqlite:///{results.parents[1]}/mlflow.db", "mini")


def by_name(store):
    return {run.info.run_name: run for run in store.search()}


class TestTracking:
    def test_makes_a_parent_for_each_cell_with_its_seeds_below(self, study, monkeypatch):
        track(study, monkeypatch)
        found = by_name(opened(study))
        parent, child = found["MC-GRPO G=4 toy"], found[RUN.name]
        assert child.data.tags[contents.PARENT] == parent.info.run_id
        assert found[MEAN.name].data.tags[contents.PARENT] == found["GRPO G=4 toy"].info.run_id
        assert parent.data.metrics == {
            "accuracy/sums/greedy": 0.75,
            "accuracy/sums/greedy_low": 0.65,
            "accuracy/sums/greedy_high": 0.85,
            "difference/sums/greedy": 0.25,
            "difference/sums/greedy_low": -0.1,
            "difference/sums/greedy_high": 0.6,
            "problems/sums": 4.0,
            "seeds": 1.0,
        }
        assert found["GRPO G=4 toy"].data.metrics["train/seconds"] == 9.0
        assert "untrained toy" in found

    def test_links_the_comparisons_from_the_experiments_first_line(self, study, monkeypatch):
        track(study, monkeypatch)
        store = opened(study)
        found = by_name(store)
        note = store.client.get_experiment(store.experiment).tags[contents.NOTE]
        ids = "%22,%22".join(found[name].info.run_id for name in ("GRPO G=4 toy", "MC-GRPO G=4 toy"))
        link = f"[GRPO](#/compare-runs?runs=[%22{ids}%22]&experiments=[%22{store.experiment}%22])"
        assert note.splitlines() == [f"Median against mean on toy: G=4 {link}", "", "It does not."]

    def test_adds_accuracies_grades_and_figures(self, study, monkeypatch):
        track(study, monkeypatch)
        store = opened(study)
        found = by_name(store)
        run = found[RUN.name]
        assert run.data.metrics["accuracy/sums/greedy"] == 0.75
        paths = {each.path for each in store.client.list_artifacts(run.info.run_id)}
        assert paths == {"grades", "metrics.jsonl", "rollouts.json", "run.json", "system.jsonl"}
        report = found["mini: tables and figures"].info.run_id
        assert [each.path for each in store.client.list_artifacts(report, "figures")] == ["figures/one.png"]

    def test_shows_completions_as_a_table_that_is_replaced_with_its_file(self, study, monkeypatch):
        for completion in ("two", "three"):
            row = {"prompt": "1+1", "completion": completion, "kept": True}
            (place(study, RUN).finished / "rollouts.jsonl").write_text(json.dumps(row) + "\n")
            track(study, monkeypatch)
            store = opened(study)
            found = store.client.load_table(store.experiment, "rollouts.json", [by_name(store)[RUN.name].info.run_id])
            assert found.to_dict("records") == [row]

    def test_again_changes_nothing(self, study, monkeypatch):
        track(study, monkeypatch)
        store = opened(study)
        before = {name: (run.info.run_id, content(store, run)) for name, run in by_name(store).items()}
        track(study, monkeypatch)
        assert {name: (run.info.run_id, content(store, run)) for name, run in by_name(store).items()} == before

    def test_again_follows_the_summary(self, study, monkeypatch):
        """Another value is put into the parent that is there; one that has lost a measure, or a cell, goes."""
        track(study, monkeypatch)
        parent = by_name(opened(study))["GRPO G=4 toy"].info.run_id
        seconds = cell("grpo", 9.0, measure="seconds", role="train")
        write_csv(study / "summary.csv", Cell, [cell("grpo", 0.625), seconds])
        track(study, monkeypatch)
        found = by_name(opened(study))
        assert found["GRPO G=4 toy"].info.run_id == parent
        assert found["GRPO G=4 toy"].data.metrics["accuracy/sums/greedy"] == 0.625
        assert "MC-GRPO G=4 toy" not in found
        write_csv(study / "summary.csv", Cell, [seconds])
        track(study, monkeypatch)
        assert by_name(opened(study))["GRPO G=4 toy"].data.metrics == {"train/seconds": 9.0, "seeds": 1.0}

    def test_replay_makes_it_all_anew_and_the_same(self, study, monkeypatch):
        track(study, monkeypatch)
        store = opened(study)
        before = by_name(store)
        kept = {name: content(store, run) for name, run in before.items()}
        track(study, monkeypatch, "--replay")
        after = by_name(store)
        assert {name: content(store, run) for name, run in after.items()} == kept
        assert not {run.info.run_id for run in after.values()} & {run.info.run_id for run in before.values()}

    def test_logs_what_is_unfinished_too(self, study, monkeypatch):
        other = replace(RUN, seed=4)
        files.write(place(study, other).unfinished, other, status="failed", error="ValueError: odd")
        track(study, monkeypatch)
        run = by_name(opened(study))[other.name]
        assert (run.info.status, run.data.tags[contents.NOTE]) == ("FAILED", "`ValueError: odd`")

    def test_says_which_run_is_which_and_never_fails_a_study(self, study, monkeypatch, capfd):
        output = study / "tracking.json"
        track(study, monkeypatch, "--output", str(output))
        assert json.loads(output.read_text()) == {
            run.name: by_name(opened(study))[run.name].info.run_id for run in (RUN, MEAN)
        }
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{study}/scores.csv")  # no database
        track(study, monkeypatch, "--output", str(output))
        assert output.read_text() == "{}\n"
        assert "warning: the study was not tracked in MLflow: " in capfd.readouterr().err
        with pytest.raises(SystemExit, match="error: sqlite"):  # a person is told
            track(study, monkeypatch)

    def test_registers_models_where_asked(self, study, monkeypatch):
        """A model for each cell, a version for each seed; it answers when it is loaded from there."""
        import mlflow

        for run in (RUN, MEAN):
            build(SPEC, study / "models" / run.name)
        for _ in range(2):
            track(study, monkeypatch, "--register-models")
        store = opened(study)
        (version,) = store.client.search_model_versions("name = 'mini.toy.mc-grpo.G4.default'")
        assert version.run_id == by_name(store)[RUN.name].info.run_id and version.tags["seed"] == "3"
        loaded = mlflow.transformers.load_model("models:/mini.toy.mc-grpo.G4.default/1", return_type="components")
        saved = AutoModelForCausalLM.from_pretrained(study / "models" / RUN.name)
        weights = loaded["model"].state_dict()
        assert all(weights[name].equal(value.to(weights[name].dtype)) for name, value in saved.state_dict().items())

    def test_of_no_study_is_an_error(self, tmp_path, monkeypatch):
        with pytest.raises(SystemExit, match="nowhere: no such folder"):
            track(tmp_path / "nowhere", monkeypatch)


def test_a_summary_without_numbers_has_no_cells(tmp_path):
    write_csv(tmp_path / "summary.csv", Cell, [cell("grpo", None)])
    assert len((tmp_path / "summary.csv").read_text().splitlines()) == 2
    assert cells.read_cells(tmp_path / "summary.csv") == {}


@pytest.mark.filterwarnings("ignore:'mcgrpo.tracking.__main__' found in sys.modules:RuntimeWarning")
def test_the_command_has_a_short_name(study, uri, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mcgrpo", "track", str(study)])
    cli.main()
    assert capsys.readouterr().out.startswith(f"2 trainings in {uri}, see http")
