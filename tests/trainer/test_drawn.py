"""A generation batch: the rows that are picked of its rollouts, and what is staged for TRL."""

import pytest
import torch

from mcgrpo.trainer.drawn import BatchState, Rollouts

ROLLOUTS = Rollouts(
    prompt_ids=[[1], [1], [2]],
    completion_ids=[[3], [4, 5], [6]],
    tool_mask=None,
    completions=["a", "b", "c"],
    logprobs=[[0.1], [0.2, 0.3], [0.4]],
    extra_fields={"turns": [1, 2, 3], "server": "one", "tags": []},
    images=None,
    tool_images=[],
)


def test_picked_rows_are_those_of_every_field():
    picked = ROLLOUTS.pick([2, 0])
    assert picked.prompt_ids == [[2], [1]] and picked.completion_ids == [[6], [3]]
    assert picked.completions == ["c", "a"] and picked.logprobs == [[0.4], [0.1]]
    assert picked.extra_fields == {"turns": [3, 1], "server": "one", "tags": []}
    assert picked.tool_mask is picked.images is None and picked.tool_images == []


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_nothing_stays_staged_after_trl_has_prepared_a_batch_or_failed(error):
    state = BatchState(computed=torch.ones(3, dtype=torch.bool))
    try:
        with state.staged(ROLLOUTS, torch.zeros(3, 1), torch.ones(3, dtype=torch.bool)):
            assert state.rollouts is ROLLOUTS and state.computed is None
            state.computed = torch.zeros(3, dtype=torch.bool)
            if error:
                raise error
    except RuntimeError:
        assert error
    assert state.rollouts is state.rewards_per_func is state.active is None
    assert not state.computed.any()
