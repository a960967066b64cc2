"""Names of sign-flip rates, and the command that computes them from a file of grades."""

import json
from itertools import product

import pytest

from mcgrpo.analyse.flip_measures import BASELINES, CONVENTIONS, HOWS, ORACLES, measure_name, parse_measure
from mcgrpo.analyse.measures import problems_hash
from mcgrpo.analyse.records import FlipRates
from mcgrpo.analyse.sign_flips import (
    exact_rate,
    flip_rates,
    main,
    read_rewards,
    tally,
)
from mcgrpo.files import RecordError, read_jsonl, write_jsonl


class TestNames:
    @pytest.mark.parametrize("part", list(product(BASELINES, ORACLES, CONVENTIONS, (1, 2, 10), HOWS)))
    def test_there_and_back(self, part):
        assert parse_measure(measure_name(*part)) == part

    def test_spelling(self):
        assert measure_name("mean", "oracle-mean", "strict", 2, "exact") == "mean/oracle-mean/strict/k2/exact"
        assert parse_measure("median-plus1/oracle-median/zeros/k8/sampled").k == 8

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("avg@8", "'avg@8' is no measure of sign flips, like 'mean/oracle-mean/strict/k2/exact'"),
            ("mode/oracle-mean/strict/k2/exact", "unknown baseline 'mode' .known: mean, median, "),
            ("mean/mean/strict/k2/exact", "unknown oracle 'mean'"),
            ("mean/oracle-mean/loose/k2/exact", "unknown convention 'loose'"),
            ("mean/oracle-mean/strict/k2/guess", "unknown how 'guess'"),
            ("mean/oracle-mean/strict/2/exact", "'2' should be k and a number"),
            ("mean/oracle-mean/strict/k02/exact", "'k02' should be k and a number"),
        ],
    )
    def test_refused(self, name, message):
        with pytest.raises(ValueError, match=message):
            parse_measure(name)


class TestFiles:
    def grades(self, path, verdicts, **columns):
        """A file of one row per (id, verdict), samples counted; returns its path."""
        seen, rows = {}, []
        for id, verdict in verdicts:
            sample = seen[id] = seen.get(id, -1) + 1
            rows.append({"id": id, "sample": sample, "extracted": None, "verdict": verdict, **columns})
        write_jsonl(path, rows)
        return path

    def test_rewards_are_those_of_training(self, tmp_path):
        verdicts = ("correct", "equivalent", "wrong", "unparseable", "timeout", "error")
        path = self.grades(tmp_path / "g.jsonl", [("b", verdict) for verdict in verdicts], decoding="sampled")
        assert read_rewards(path) == {"b": [2.0, 1.5, 0.0, 0.0, 0.0, 0.0]}

    def test_without_a_gold_the_reward_is_constant(self, tmp_path):
        rows = [("a", "unparseable")] * 3
        path = self.grades(tmp_path / "g.jsonl", rows, decoding="sampled", gold_parsable=False)
        assert read_rewards(path) == {"a": [1.0] * 3}
        assert {value for row in flip_rates(read_rewards(path), [2], 5, 0) for value in row.values} == {0.0}

    def test_the_command_prints_the_exact_rates(self, tmp_path, capsys):
        rows = [("b", "correct"), ("b", "equivalent"), ("b", "wrong"), ("a", "wrong"), ("a", "wrong"), ("a", "wrong")]
        path = self.grades(tmp_path / "g.jsonl", rows, decoding="sampled")
        main(["--grades", str(path), "--k", "2", "1", "--output", str(tmp_path / "flips.jsonl")])
        first, header, *lines = capsys.readouterr().out.splitlines()
        assert first.startswith("64 measures of 2 problems")
        assert header.split() == ["strict", "k2", "strict", "k1", "zeros", "k2", "zeros", "k1"]
        assert [line.split()[:2] for line in lines] == [[*part] for part in product(BASELINES, ORACLES)]
        assert lines[0].split()[2] == "8.33"  # the mean over problems of 1/6 and 0

    def test_the_command(self, tmp_path):
        rows = [("b", "correct"), ("a", "wrong"), ("b", "equivalent"), ("a", "wrong"), ("b", "wrong"), ("a", "wrong")]
        path = self.grades(tmp_path / "g.jsonl", rows, decoding="sampled")
        options = ["--grades", str(path), "--k", "2", "--subsamples", "4", "--output"]
        main([*options, str(tmp_path / "flips.jsonl")])
        found = {row.measure: row for row in read_jsonl(tmp_path / "flips.jsonl", FlipRates)}
        every = product(BASELINES, ORACLES, CONVENTIONS, HOWS)
        assert set(found) == {measure_name(*part, 2, how) for *part, how in every}
        assert found["mean/oracle-mean/strict/k2/exact"].values == [1 / 6, 0.0]
        assert {row.problems for row in found.values()} == {problems_hash(["b", "a"])}
        main([*options, str(tmp_path / "again.jsonl")])
        assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "flips.jsonl").read_bytes()
        main([*options, str(tmp_path / "other.jsonl"), "--seed", "1"])
        other = {row.measure: row for row in read_jsonl(tmp_path / "other.jsonl", FlipRates)}
        assert {name.split("/")[-1] for name in found if other[name] != found[name]} == {"sampled"}

    def test_a_problems_subsets_do_not_depend_on_the_others(self):
        rewards = {"a": [0, 1.5, 2, 2, 0], "b": [2, 0, 0, 0, 1.5]}
        both = {row.measure: row.values for row in flip_rates(rewards, [2, 4], 3, 0)}
        alone = {row.measure: row.values for row in flip_rates({"b": rewards["b"]}, [4], 3, 0)}
        assert len(alone) == 32
        assert all(both[measure][1] == value for measure, (value,) in alone.items())

    def test_too_few_rollouts(self, tmp_path):
        rows = [("a/7", "correct")] * 4
        path = self.grades(tmp_path / "g.jsonl", rows, decoding="sampled")
        with pytest.raises(SystemExit, match=r"g\.jsonl: problem 'a/7' has 4 rollouts; k = 4 needs 5"):
            main(["--grades", str(path), "--k", "2", "4", "--output", str(tmp_path / "flips.jsonl")])
        assert not (tmp_path / "flips.jsonl").exists()
        with pytest.raises(ValueError, match="4 rollouts: a median-plus1 baseline at k = 4 needs 5"):
            exact_rate(tally([0, 2, 2, 2]), "median-plus1", "oracle-mean", "zeros", 4)

    def test_a_file_without_samples(self, tmp_path):
        path = self.grades(tmp_path / "g.jsonl", [("a", "correct")], decoding="greedy")
        with pytest.raises(RecordError, match="no sampled completions"):
            read_rewards(path)
        path.write_text(json.dumps({"id": "a", "sample": 0, "extracted": None, "verdict": "fine"}))
        with pytest.raises(RecordError, match=r"g\.jsonl:1: field 'verdict' should be one of"):
            read_rewards(path)

    @pytest.mark.parametrize(("option", "value"), [("--k", "0"), ("--subsamples", "none"), ("--seed", "-1")])
    def test_options_are_whole_numbers(self, option, value, capsys):
        with pytest.raises(SystemExit):
            main(["--grades", "g.jsonl", "--output", "flips.jsonl", f"{option}={value}"])
        assert f"argument {option}: '{value}' should be a whole number" in capsys.readouterr().err
