"""What `groups.jsonl` of a training says against its metrics, both written by hand."""

from dataclasses import replace

import pytest
from runs import RUN

from mcgrpo.evidence.rollouts import disagreements, takes_one_batch
from mcgrpo.files import write_jsonl
from mcgrpo.records import Group

GROUPS = [
    Group(1, 0, [0.0, 1.0, 3.0], [-1.5, 0.0, 3.5], [1, 0, 1], [5, 5, 5]),
    Group(1, 1, [2.0, 2.0, 2.0], [0.0, 0.0, 0.0], [1, 1, 0], [5, 5, 5]),
]
METRICS = {"step": 1, "drawn/reward": 10 / 6, "drawn/frac_unscorable": 0.0, "advantage/abs_max": 3.5,
           "advantage/frac_zero": 0.5}  # fmt: skip
LARGEST = "the largest advantage is not that of metrics.jsonl"
ZERO = "the share of advantages that are 0 is not that of metrics.jsonl"
TWO = replace(RUN, num_generations=2)


@pytest.fixture
def told(tmp_path):
    """What disagrees, without the place."""

    def told(groups=GROUPS, run=TWO, **changed):
        write_jsonl(tmp_path / "groups.jsonl", groups)
        write_jsonl(tmp_path / "metrics.jsonl", [METRICS | changed])
        return [line.split(": step 1: ")[-1] for line in disagreements(tmp_path, run)]

    return told


def with_advantages(*advantages):
    return [replace(GROUPS[0], advantages=list(advantages)), GROUPS[1]]


class TestAdvantages:
    def test_that_are_those_of_the_metrics_agree(self, told):
        assert told() == []
        assert told(**{"advantage/abs_max": 3.5 * (1 + 5e-5)}) == []  # of single precision

    @pytest.mark.parametrize(
        ("advantages", "odd"),
        [
            ((-1.5, 0.0, 3.502), [LARGEST]),
            ((-1.5, 9.0, 3.5), []),  # of a row that was not kept, nothing is logged
            ((-3.5, 0.0, 0.0), [ZERO]),
            ((7.0, 7.0, 7.0), [LARGEST]),
            ((None, 0.0, 3.5), [LARGEST]),
        ],
    )
    def test_that_are_others_are_found(self, told, advantages, odd):
        assert told(with_advantages(*advantages)) == odd

    def test_of_a_step_with_unscored_rollouts_are_not_compared(self, told):
        groups = [replace(GROUPS[0], rewards=[0.0, None, 3.0], advantages=[-1.5, 0.0, 9.0]), GROUPS[1]]
        assert told(groups, **{"drawn/frac_unscorable": 1 / 6}) == []

    def test_of_a_step_with_several_batches_are_not_compared(self, told):
        """The metrics are means over batches there."""
        several = replace(TWO, training={"gradient_accumulation_steps": 2, "steps_per_generation": 1})
        assert told(with_advantages(-1.5, 0.0, 9.0), several) == []
        assert not takes_one_batch(several)
        assert takes_one_batch(replace(several, training=several.training | {"num_iterations": 2}))


class TestRewards:
    @pytest.mark.parametrize(("factor", "odd"), [(1 + 5e-6, []), (1 + 5e-5, ["the mean reward"])])
    def test_of_large_weights_agree_as_far_as_single_precision_goes(self, told, factor, odd):
        groups = [replace(group, rewards=[1e4 * reward for reward in group.rewards]) for group in GROUPS]
        found = told(groups, **{"drawn/reward": 1e5 / 6 * factor})
        assert [line.removesuffix(" is not that of metrics.jsonl") for line in found] == odd
