"""Sign-flip rates: by hand, against every subset one by one."""

import itertools
import statistics
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcgrpo.analyse.measures import problems_hash
from mcgrpo.analyse.records import Measure
from mcgrpo.analyse.sign_flips import (
    BASELINES,
    CONVENTIONS,
    ORACLES,
    FlipMeasure,
    flip_rates,
    main,
    parse_measure,
    rate,
    read_rewards,
    tally,
)
from mcgrpo.files import RecordError, read_jsonl, write_jsonl

LEVELS = st.sampled_from([(0, 2), (0, 1.5, 2), (0, 1, 2), (0, 0.5, 1, 1.5, 2, 3), (-1.5, 0, 0.1)])
REWARDS = LEVELS.flatmap(lambda levels: st.lists(st.sampled_from(levels), min_size=3, max_size=8))


def centre_of(values, baseline):
    return statistics.mean(values) if "mean" in baseline else statistics.median(values)


def sign(value):
    return (value > 0) - (value < 0)


def by_brute_force(rewards, baseline, oracle, convention, k):
    """As the definition reads, over every order of every subset where a rollout is dropped: the first of equals is."""
    rewards = [Fraction(reward) for reward in rewards]
    truth = [sign(reward - centre_of(rewards, oracle)) for reward in rewards]
    flips, kept_rollouts = 0, 0
    plus1 = baseline.endswith("plus1")
    for subset in (itertools.permutations if plus1 and k < 4 else combinations)(range(len(rewards)), k + plus1):
        centre = centre_of([rewards[i] for i in subset], baseline)
        dropped = {min(subset, key=lambda i: abs(rewards[i] - centre))} if plus1 else set()
        for i in set(subset) - dropped:
            found = sign(rewards[i] - centre)
            flips += found * truth[i] < 0 if convention == "strict" else found != truth[i]
            kept_rollouts += 1
    return Fraction(flips, kept_rollouts)


def test_levels_are_told_apart_however_close_they_are():
    assert tally([2.0, 0.0, 1.5, 2]) == ((0, 3, 4), (1, 1, 2))
    assert tally([0.1 + 0.2, 0.3, 0.3]).counts == (2, 1)  # by 2**-54


class TestProperties:
    @settings(max_examples=300)
    @given(REWARDS, st.sampled_from(BASELINES), st.sampled_from(ORACLES), st.sampled_from(CONVENTIONS), st.data())
    def test_the_closed_form_is_the_mean_over_all_subsets(self, rewards, baseline, oracle, convention, data):
        most = min(len(rewards) - baseline.endswith("plus1"), 3 if "plus1" in baseline else 8)
        measure = FlipMeasure(baseline, oracle, convention, data.draw(st.integers(1, most)))
        assert rate(tally(rewards), measure) == by_brute_force(rewards, *measure)


def test_a_name_is_read_as_it_is_written():
    for part in product(BASELINES, ORACLES, CONVENTIONS, (1, 2, 10)):
        assert parse_measure(str(FlipMeasure(*part))) == part
    for name in ("avg@8", "mode/oracle-mean/strict/k2", "mean/oracle-mean/strict/k02"):
        with pytest.raises(ValueError, match=f"'{name}' is no measure of sign flips, like 'mean/oracle-mean/"):
            parse_measure(name)


def write_grades(path, verdicts, decoding="sampled", **columns):
    """A file of one row per (id, verdict), samples counted; returns its path."""
    seen, rows = {}, []
    for id, verdict in verdicts:
        sample = seen[id] = seen.get(id, -1) + 1
        rows.append(
            {"id": id, "sample": sample, "extracted": None, "verdict": verdict, "decoding": decoding, **columns}
        )
    write_jsonl(path, rows)
    return path


class TestFiles:
    def test_rewards_are_those_of_training(self, tmp_path):
        verdicts = ("correct", "equivalent", "wrong", "unparseable", "timeout", "error")
        path = write_grades(tmp_path / "g.jsonl", [("b", verdict) for verdict in verdicts])
        assert read_rewards(path) == {"b": [2.0, 1.5, 0.0, 0.0, 0.0, 0.0]}
        write_grades(path, [("a", "unparseable")] * 3, gold_parsable=False)
        assert read_rewards(path) == {"a": [1.0] * 3}  # without a gold there is nothing to be wrong about
        assert {value for row in flip_rates(read_rewards(path), [2]) for value in row.values} == {0.0}

    def test_the_command_writes_and_prints_all_rates(self, tmp_path, capsys):
        rows = [("b", "correct"), ("b", "equivalent"), ("b", "wrong"), ("a", "wrong"), ("a", "wrong"), ("a", "wrong")]
        grades, output = write_grades(tmp_path / "g.jsonl", rows), tmp_path / "flips.jsonl"
        main(["--grades", str(grades), "--k", "2", "1", "--output", str(output)])
        found = {row.measure: row for row in read_jsonl(output, Measure)}
        assert set(found) == {str(FlipMeasure(*part)) for part in product(BASELINES, ORACLES, CONVENTIONS, (2, 1))}
        assert found["mean/oracle-mean/strict/k2"].values == [1 / 6, 0.0]
        assert {row.problems for row in found.values()} == {problems_hash(["b", "a"])}
        printed = capsys.readouterr().out
        assert printed.startswith("32 measures of 2 problems") and "8.33" in printed  # the mean of 1/6 and 0

    def test_too_few_rollouts(self, tmp_path):
        path = write_grades(tmp_path / "g.jsonl", [("a/7", "correct")] * 4)
        with pytest.raises(SystemExit, match=r"error: problem 'a/7' has 4 rollouts; k = 4 needs 5"):
            main(["--grades", str(path), "--k", "2", "4", "--output", str(tmp_path / "flips.jsonl")])
        assert not (tmp_path / "flips.jsonl").exists()
        write_grades(path, [("a", "correct")], decoding="greedy")
        with pytest.raises(RecordError, match="no sampled completions"):
            read_rewards(path)
