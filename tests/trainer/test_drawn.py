"""A generation batch: the rows that are picked of its rollouts, and what is staged for TRL."""

from tiny_training import TRL, Ours, trainer_of

from mcgrpo.trainer.drawn import Rollouts

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
