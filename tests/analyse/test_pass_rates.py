"""The spread of pass rates along a training, from the groups that it draws anyway."""

import dataclasses

import pytest
import torch
from answers import plan_of
from runs import RUN

from mcgrpo.analyse.pass_rates import POINTS, probabilities, trainings, windows
from mcgrpo.files import write_jsonl
from mcgrpo.records import Group
from mcgrpo.study.paths import GROUPS, ResultFiles


def groups_of(rates, n, seed=0):
    """One group of n rewards for each pass rate."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(len(rates), n, generator=generator) < rates[:, None]
    return (2.0 * drawn).tolist()


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 1.5), (6.0, 2.0)])
def test_mean_and_spread_are_those_of_the_prompts_not_of_the_groups(a, b):
    torch.manual_seed(0)
    rates = torch.distributions.Beta(a, b).sample((20000,))
    levels, chances = probabilities(groups_of(rates, 4))
    assert levels == (0.0, 2.0) and chances.shape == (POINTS, 2)
    assert chances.sum(1) == pytest.approx([1.0] * POINTS)
    assert float(chances[:, 1].mean()) == pytest.approx(float(rates.mean()), abs=0.01)
    assert float(chances[:, 1].std()) == pytest.approx(float(rates.std()), abs=0.02)


@pytest.mark.parametrize("reward", [0.0, 2.0])
def test_without_any_difference_all_prompts_are_sure(reward):
    _, chances = probabilities([[reward] * 4] * 5)
    assert chances[:, 1].tolist() == [reward / 2] * POINTS


def test_successes_are_spread_over_their_levels_as_they_were():
    levels, chances = probabilities([[0.0, 1.0, 2.0, 2.0]] * 10)
    assert levels == (0.0, 1.0, 2.0)
    assert (chances[:, 2] / chances[:, 1]).tolist() == pytest.approx([2.0] * POINTS)


def run(method, budget, seed=0, **changed):
    return dataclasses.replace(RUN, method=method, num_generations=budget, seed=seed, **changed)


def test_grpo_at_the_largest_g_is_looked_at_in_all_its_seeds():
    runs = [run("mc-grpo", 8), run("grpo", 2), run("grpo", 4), run("grpo", 4, 1), run("grpo", 4, variant="lr")]
    plan = plan_of(["toy"], runs=runs)
    assert [[each.seed for each in found] for found in trainings(plan)] == [[0, 1]]


def test_a_window_is_a_tenth_of_the_steps(tmp_path):
    made, files = run("grpo", 2), ResultFiles(tmp_path)
    path = files.run(made.name) / GROUPS
    path.parent.mkdir(parents=True)
    write_jsonl(path, [vars(Group(step, 0, [float(step), None], [], [], [])) for step in range(1, 31)])
    found = dict(windows([made], files))
    assert found == {
        "steps 1-3": [[1.0], [2.0], [3.0]],
        "steps 11-13": [[11.0], [12.0], [13.0]],
        "steps 28-30": [[28.0], [29.0], [30.0]],
    }
    assert list(windows([run("grpo", 4)], files)) == []
