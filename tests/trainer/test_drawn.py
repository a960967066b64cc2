"""A generation batch: the rows that are drawn, and those that are picked of its rollouts."""

import numpy as np
import pytest
from tiny_training import TRL, Ours, trainer_of

from mcgrpo.trainer.drawn import expand


def test_rollouts_of_one_prompt_share_nothing_that_one_of_them_may_change():
    row = {"prompt": [{"role": "user", "content": "2 + 2"}], "board": [0, 0]}
    rows = expand([row, row], 2, 3)
    rows[0]["prompt"].append({"role": "assistant", "content": "4"})
    rows[0]["board"][0] = 1
    assert rows[1:] == [row, row] and len(row["prompt"]) == 1


def test_rows_without_a_prompt_are_compared_whatever_they_hold():
    """Environments that give the prompt themselves."""
    one, other = ({"board": np.zeros(2) + n, "score": float("nan")} for n in (0, 1))
    assert len(expand([one, dict(one)], 2, 3)) == 3
    with pytest.raises(ValueError, match="a group of 2 rows holds more than one prompt"):
        expand([one, other], 2, 3)


def test_an_empty_field_of_a_rollout_func_is_in_no_row_as_with_trl(tmp_path):
    def rollout_func(prompts, trainer):
        ids = [trainer.processing_class(prompt)["input_ids"] for prompt in prompts]
        return {"prompt_ids": ids, "completion_ids": ids, "logprobs": None, "tags": []}

    def reward(completions, tags=None, **kwargs):
        assert tags is None
        return [float(len(text)) for text in completions]

    for kind in (TRL, Ours):
        trainer = trainer_of(kind, tmp_path, reward, max_steps=1)
        trainer.rollout_func = rollout_func
        trainer.train()
        assert len(trainer.losses) == 1


@pytest.mark.parametrize("estimator", ["mean-std", "median-mad"])
def test_fields_of_a_rollout_func_reach_the_rewards_row_by_row_as_with_trl(estimator, tmp_path):
    def rollout_func(prompts, trainer):
        ids = [trainer.processing_class(prompt)["input_ids"] for prompt in prompts]
        points = [float(place % 4) for place in range(len(prompts))]
        return {"prompt_ids": ids, "completion_ids": ids, "logprobs": None, "points": points, "bonus": 0.5}

    def reward(completions, points, bonus, **kwargs):
        given.append((points, bonus))
        return [each + more for each, more in zip(points, bonus, strict=True)]

    for kind, settings in ((TRL, {}), (Ours, {"estimator": estimator})):
        given = []
        trainer = trainer_of(kind, tmp_path, reward, max_steps=1, **settings)
        trainer.rollout_func = rollout_func
        trainer.train()
        drawn = 8 if kind is TRL or estimator == "mean-std" else 10
        assert given == [([place % 4 for place in range(drawn)], [0.5] * drawn)]
