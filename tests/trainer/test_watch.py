"""What would spoil a training in silence is said: rewards that score nothing, a scale of 0, completions cut off."""

import warnings

import pytest
import torch
from tiny_training import Ours, digits_reward, history, trained, trainer_of

from mcgrpo.trainer.watch import Watch

MAD_ZERO = "is 0 in most groups whose rewards differ"


def unscored(completions, **kwargs):
    return [None] * len(completions)


def rare_reward(completions, **kwargs):
    """0 and 1, one success in each group of G + 1 = 5."""
    return [float(row % 5 == 0) for row in range(len(completions))]


def spread_reward(completions, **kwargs):
    return [float(row % 5) for row in range(len(completions))]


def scored_in(*batches):
    """A reward that scores nothing but in some batches, counted from 1."""
    calls = []

    def reward(completions, **kwargs):
        calls.append(None)
        return digits_reward(completions) if len(calls) in batches else [float("nan")] * len(completions)

    return reward


def said(folder, reward=rare_reward, **settings):
    """How often a training warned of a scale of 0, and the trainer."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = trained(Ours, folder, reward, **settings)
    return [str(each.message) for each in caught if MAD_ZERO in str(each.message)], trainer


@pytest.mark.parametrize("reward", [unscored, scored_in()], ids=["none", "nan"])
def test_a_training_without_a_scored_rollout_ends_at_its_first_batch(reward, tmp_path):
    with pytest.raises(ValueError, match=r"no rollout of the first generation batch.* could be scored"):
        trained(Ours, tmp_path, reward)


@pytest.mark.slow
def test_two_batches_without_a_scored_rollout_are_borne_and_three_are_not(tmp_path):
    borne = trained(Ours, tmp_path, scored_in(1, 4, 7), max_steps=7)
    assert history(borne, "drawn/frac_unscorable") == [0, 1, 1, 0, 1, 1, 0]
    trainer = trainer_of(Ours, tmp_path, scored_in(1), max_steps=7)
    with pytest.raises(ValueError, match="or of the last three"):
        trainer.train()
    assert trainer.state.global_step == 3


def test_a_scale_of_0_in_most_groups_is_warned_of_once(tmp_path):
    (message,), trainer = said(tmp_path)
    assert history(trainer, "advantage/abs_max") == pytest.approx([1000] * 3)
    assert "deviations / 0.001, here up to 1000" in message
    assert all(remedy in message for remedy in ("mad_zero='std'", "'mean_absolute_deviation'", "'unit'"))


@pytest.mark.parametrize(
    "settings",
    [
        {"mad_zero": "std"},
        {"max_advantage": 10.0},
        {"estimator": "mean-std"},
        {"estimator": "median"},
        {"reward": spread_reward},
        {"max_steps": 2},
    ],
    ids=["a standard deviation", "a bound", "the mean", "no scale", "most groups have a scale", "few groups"],
)
def test_where_all_is_well_or_not_known_nothing_is_said(settings, tmp_path):
    assert said(tmp_path, **settings)[0] == []


@pytest.mark.slow
def test_a_resumed_training_bears_what_an_uninterrupted_one_does(tmp_path):
    """The batch after its checkpoint, which is not its first, has no scored rollout."""
    settings = {"max_steps": 3, "save_strategy": "steps", "save_steps": 1}
    whole = trained(Ours, tmp_path, scored_in(1, 3), **settings)
    resumed = trainer_of(Ours, tmp_path, scored_in(2), **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    assert history(resumed, "drawn/frac_unscorable") == history(whole, "drawn/frac_unscorable") == [0, 1, 0]


CUT_OFF = "was cut off at max_completion_length=8, and no group has two different rewards"


def flat_reward(completions, **kwargs):
    return [0.0] * len(completions)


def ends_at_once(folder, steps=3, reward=flat_reward, end=False, **settings):
    """What a training says whose completions are all cut off, or all end with their first token."""
    trainer = trainer_of(Ours, folder, reward, max_steps=steps, max_completion_length=8, **settings)
    vocabulary = len(trainer.processing_class)
    bias = torch.zeros(vocabulary)
    bias[trainer.eos_token_ids] = 1e4 if end else -1e4
    trainer.model.lm_head.register_forward_hook(lambda module, args, logits: logits + bias[: logits.size(-1)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.train()
    return [str(each.message) for each in caught if "was cut off" in str(each.message)]


def test_completions_that_are_all_cut_off_and_teach_nothing_are_warned_of_once(tmp_path):
    (message,) = ends_at_once(tmp_path, steps=4)
    assert CUT_OFF in message and "Raise max_completion_length" in message


@pytest.mark.parametrize(
    "settings",
    [{"steps": 2}, {"reward": spread_reward}, {"end": True}],
    ids=["two batches", "rewards differ", "completions end"],
)
def test_where_something_is_learned_or_completions_end_nothing_is_said_of_cuts(settings, tmp_path):
    assert ends_at_once(tmp_path, **settings) == []


def test_masked_ratios_are_warned_of_once_after_three_batches_in_a_row(tmp_path):
    watch = Watch(trainer_of(Ours, tmp_path).args)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        counts = []
        for share in (0.5, 0.5, 0.1, 0.5, 0.5, 0.5, 0.5):  # 0.1 is not over a tenth
            watch.look_at_ratios(share)
            counts.append(len(caught))
    assert counts == [0, 0, 0, 0, 0, 1, 1] and "50% of the rows" in str(caught[0].message)


def test_ratios_are_those_of_computed_rows(tmp_path):
    """Of rows, or of their tokens: here of two of four rows, one of which is masked, and which have three tokens."""
    trainer = trainer_of(Ours, tmp_path)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]])
    trainer._batch.computed = torch.tensor([False, True, True, False])
    rows, tokens = (
        torch.tensor([[0.0], [0.0], [2.0], [9.0]]),
        torch.tensor([[7.0, 7, 7], [0, 2, 9], [4, 9, 9], [7, 7, 7]]),
    )
    for ratios, share, values in ((rows, 0.5, (0.0, 1.0, 2.0)), (tokens, 1 / 3, (0.0, 2.0, 4.0))):
        logged = trainer._metrics["train"]
        for name in ("min", "mean", "max"):
            logged[f"sampling/importance_sampling_ratio/{name}"].append(-1.0)  # TRL's
        batch = {"old_per_token_logps": torch.zeros(4, 3), "importance_sampling_ratio": ratios, "completion_mask": mask}
        assert trainer._finish_old_logps(batch) == pytest.approx(share)
        found = [
            logged[f"sampling/importance_sampling_ratio/{name}"][-1] for name in ("min", "mean", "max", "frac_zero")
        ]
        assert found == pytest.approx([*values, share])
