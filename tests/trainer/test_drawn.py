"""A generation batch: the rows that are picked of its rollouts."""

from tiny_training import TRL, Ours, trainer_of


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
