"""One seed more where a gain is undecided: the overlay that says so is a study file."""

import sys

import numpy as np
import pytest
import studies
import yaml

from mcgrpo.analyse.records import Gain
from mcgrpo.commands import next_seeds
from mcgrpo.files import write_csv
from mcgrpo.study import read as study_file
from mcgrpo.study.plan import expand

MINI = str(studies.ROOT / "config/mini.yaml")
PLANNED = len(study_file.read([MINI])["experiments"]["headline-llama"]["seeds"])
CLEAR = {"grpo-plus1": 0.001, "mc-grpo": 0.05}


def gains(seeds, means, setting="toy-qwen3", seed=0, sd=0.004):
    generator = np.random.default_rng(seed)
    for method, mean in means.items():
        for number in seeds:
            key = {"setting": setting, "method": method, "num_generations": 2, "variant": "default", "seed": number}
            gain = mean + sd * generator.normal()
            yield Gain(**key, benchmark="two-step", role="in", measure="greedy", kind="difference", baseline="grpo",
                       gain=gain)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(monkeypatch, rows, *options):
    write_csv(study_file.Path("results/mini/gains.csv"), Gain, rows)
    arguments = ["mcgrpo", MINI, "--experiments", "headline-llama", "--output", "next.yaml", *options]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stopped:
        next_seeds.main()
    return stopped.value.code


def llama(seeds, means, **other):
    return list(gains(seeds, means, "toy-llama", **other))


def test_an_undecided_gain_gets_one_seed_more_each_time_until_it_is_decided(monkeypatch, folder, capsys):
    noisy = {"grpo-plus1": 0.0, "mc-grpo": 0.0}
    for seeds in range(PLANNED, PLANNED + 3):
        assert call(monkeypatch, llama(range(seeds), noisy, sd=0.05)) == 0
        config = study_file.read([MINI, "next.yaml"])
        assert config["experiments"]["headline-llama"]["seeds"] == list(range(seeds + 1))
        whole = set(expand(study_file.read([MINI])))
        assert whole < set(expand(config)) and all("toy-llama" in run for run in set(expand(config)) - whole)
    capsys.readouterr()
    assert call(monkeypatch, llama(range(PLANNED + 3), CLEAR)) == next_seeds.DONE
    told = capsys.readouterr().out
    assert "better" in told and "equivalent" in told and "No seed is to be added" in told


def test_with_the_most_seeds_it_stops_undecided(monkeypatch, capsys):
    rows = llama(range(PLANNED), {"grpo-plus1": 0.0, "mc-grpo": 0.0}, sd=0.05)
    assert call(monkeypatch, rows, "--most", str(PLANNED)) == next_seeds.DONE
    assert "undecided" in capsys.readouterr().out


def test_a_planned_seed_without_a_gain_is_an_error_as_seeds_are_judged_in_order(monkeypatch, folder):
    error = call(monkeypatch, llama([0, 1, 2, *range(4, PLANNED)], CLEAR))
    assert "toy-llama/grpo-plus1/G2/default on two-step: seed 3 has no gain yet" in error
    assert not (folder / "next.yaml").exists()


def test_a_measure_that_has_no_gains_is_named(monkeypatch):
    error = call(monkeypatch, llama(range(PLANNED), CLEAR), "--measure", "gredy")
    assert "no gains in gredy; there are those in greedy" in error


def test_a_study_that_was_not_run_is_named(monkeypatch, folder):
    monkeypatch.setattr(sys, "argv", ["mcgrpo", MINI, "--output", "next.yaml"])
    with pytest.raises(SystemExit, match=r"gains\.csv: no such file: nothing of study 'mini' has been run here"):
        next_seeds.main()


def test_an_experiment_that_does_not_exist_is_named(monkeypatch):
    assert "--experiments none" in call(monkeypatch, [], "--experiments", "none")


def test_what_else_the_overlay_says_stays(monkeypatch, folder):
    given = {"seeds": [0, 1, 2, 3, 4, 5], "num_generations": [2]}
    (folder / "next.yaml").write_text(yaml.safe_dump({"title": "Mine", "experiments": {"main": given}}))
    assert call(monkeypatch, llama(range(PLANNED), {"grpo-plus1": 0.0, "mc-grpo": 0.0}, sd=0.05)) == 0
    written = yaml.safe_load((folder / "next.yaml").read_text())
    assert written["title"] == "Mine" and written["experiments"]["main"] == given
    assert len(written["experiments"]["headline-llama"]["seeds"]) == PLANNED + 1
