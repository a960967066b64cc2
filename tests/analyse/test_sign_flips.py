"""Sign-flip rates: by hand, against every subset one by one, and the paper's random subsets against all of them."""

import itertools
import statistics
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcgrpo.analyse.measures import problems_hash
from mcgrpo.analyse.records import Measure
from mcgrpo.analyse.sign_flips import (
    BASELINES,
    CONVENTIONS,
    HOWS,
    ORACLES,
    FlipMeasure,
    Tally,
    draw,
    drawn_groups,
    every_group,
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
        k = data.draw(st.integers(1, most))
        counted = tally(rewards)
        groups = every_group(counted.counts, k + baseline.endswith("plus1"))
        found = rate(counted, baseline, oracle, convention, groups)
        assert found == by_brute_force(rewards, baseline, oracle, convention, k)


class TestSampled:
    @given(REWARDS, st.sampled_from(BASELINES), st.sampled_from(ORACLES), st.sampled_from(CONVENTIONS))
    def test_over_all_subsets_it_is_exact(self, rewards, baseline, oracle, convention):
        """With every ordered subset in place of random ones."""
        assume(len(rewards) <= 6)
        counted = tally(rewards)
        rollouts = np.repeat(np.arange(len(counted.levels)), counted.counts)
        size = 2 + baseline.endswith("plus1")
        every = drawn_groups(np.array(list(itertools.permutations(rollouts, size))), len(counted.levels))
        exact = every_group(counted.counts, size)
        assert rate(counted, baseline, oracle, convention, every) == rate(counted, baseline, oracle, convention, exact)

    def test_subsets_are_drawn_without_replacement(self):
        drawn = draw(Tally((0, 1, 2), (1, 3, 1)), 4, 50, np.random.default_rng(0))
        assert {tuple(row) for row in np.sort(drawn)} == {(0, 1, 1, 1, 2)}
        assert len({tuple(row) for row in drawn}) > 5


def test_a_name_is_read_as_it_is_written():
    for part in product(BASELINES, ORACLES, CONVENTIONS, (1, 2, 10), HOWS):
        assert parse_measure(str(FlipMeasure(*part))) == part
    for name in ("avg@8", "mode/oracle-mean/strict/k2/exact", "mean/oracle-mean/strict/k02/exact"):
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
        assert {value for row in flip_rates(read_rewards(path), [2], 5, 0) for value in row.values} == {0.0}

    def test_the_command_writes_all_rates_and_prints_the_exact_ones(self, tmp_path, capsys):
        rows = [("b", "correct"), ("b", "equivalent"), ("b", "wrong"), ("a", "wrong"), ("a", "wrong"), ("a", "wrong")]
        options = ["--grades", str(write_grades(tmp_path / "g.jsonl", rows)), "--k", "2", "1", "--subsamples", "4"]
        found = []
        for seed in ("0", "0", "1"):
            main([*options, "--seed", seed, "--output", str(tmp_path / "flips.jsonl")])
            found.append({row.measure: row for row in read_jsonl(tmp_path / "flips.jsonl", Measure)})
        every = product(BASELINES, ORACLES, CONVENTIONS, (2, 1), HOWS)
        assert found[0] == found[1] and set(found[0]) == {str(FlipMeasure(*part)) for part in every}
        assert {name.split("/")[-1] for name in found[0] if found[2][name] != found[0][name]} == {"sampled"}
        assert found[0]["mean/oracle-mean/strict/k2/exact"].values == [1 / 6, 0.0]
        assert {row.problems for row in found[0].values()} == {problems_hash(["b", "a"])}
        printed = capsys.readouterr().out
        assert printed.startswith("64 measures of 2 problems") and "8.33" in printed  # the mean of 1/6 and 0

    def test_a_problems_subsets_do_not_depend_on_the_others(self):
        rewards = {"a": [0, 1.5, 2, 2, 0], "b": [2, 0, 0, 0, 1.5]}
        both = {row.measure: row.values for row in flip_rates(rewards, [2, 4], 3, 0)}
        alone = {row.measure: row.values for row in flip_rates({"b": rewards["b"]}, [4], 3, 0)}
        assert len(alone) == 32
        assert all(both[measure][1] == value for measure, (value,) in alone.items())

    def test_too_few_rollouts(self, tmp_path):
        path = write_grades(tmp_path / "g.jsonl", [("a/7", "correct")] * 4)
        with pytest.raises(SystemExit, match=r"error: problem 'a/7' has 4 rollouts; k = 4 needs 5"):
            main(["--grades", str(path), "--k", "2", "4", "--output", str(tmp_path / "flips.jsonl")])
        assert not (tmp_path / "flips.jsonl").exists()
        write_grades(path, [("a", "correct")], decoding="greedy")
        with pytest.raises(RecordError, match="no sampled completions"):
            read_rewards(path)
