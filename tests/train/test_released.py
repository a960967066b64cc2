"""The release's faults: each by hand, and each in training on a tiny model."""

from collections import Counter

import pandas as pd
import pytest
from tiny_training import Ours, Released, digits_reward, history, same_training, trained

from mcgrpo.train.released import positional_order, share_mixed


class TestByHand:
    @pytest.mark.parametrize(("prompts", "num_generations"), [(2, 2), (2, 8), (4, 4), (8, 2), (16, 4)])
    def test_no_group_is_pure(self, prompts, num_generations):
        order = positional_order(prompts, num_generations, 1)
        assert sorted(order.tolist()) == list(range(prompts * (num_generations + 1)))
        assert share_mixed(order, num_generations + 1) == 1.0

    def test_a_single_prompt_is_a_pure_group(self):
        assert positional_order(1, 4, 1).tolist() == [0, 1, 2, 3, 4]
        assert share_mixed(positional_order(1, 4, 1), 5) == 0.0


class TestOff:
    @pytest.mark.slow
    def test_it_is_our_trainer_bit_for_bit(self, tmp_path):
        ours, released = (trained(kind, tmp_path, loss_type="dapo") for kind in (Ours, Released))
        assert any(loss != 0 for loss in ours.losses)
        assert same_training(ours, released)
        seconds = {"step_time", "train_runtime", "train_samples_per_second", "train_steps_per_second"}
        for one, other in zip(ours.state.log_history, released.state.log_history, strict=True):
            kept = {name for name in one if name not in seconds and not name.startswith("seconds/")}
            assert one.keys() == other.keys()
            assert {name: one[name] for name in kept} == {name: other[name] for name in kept}


def scripted(rewards):
    """A reward function that gives these rewards to the rows of every batch, in the order they are scored in."""

    def scripted_reward(completions, log_extra, **kwargs):
        assert len(completions) == len(rewards)
        log_extra("place", list(range(len(rewards))))
        return list(rewards)

    return scripted_reward


def update(tmp_path, rewards, num_generations, **settings):
    """The first update's rows as a table: prompt, place among the rows scored, advantage."""
    trainer = trained(
        Released,
        tmp_path,
        scripted(rewards),
        num_generations=num_generations,
        per_device_train_batch_size=len(rewards) * num_generations // (num_generations + 1),
        max_steps=1,
        log_completions=True,
        **settings,
    )
    table = pd.read_parquet(next((tmp_path / "completions").glob("*.parquet")))
    assert sorted(trainer.batches[0]["advantages"].tolist()) == sorted(table["advantage"])
    return trainer, table


@pytest.mark.slow
class TestInTraining:
    # three prompts A, B, C with G = 2, scored as AAA BBB CCC
    REWARDS = (0.0, 2.0, 5.0, 1.0, 1.0, 1.0, 3.0, 4.0, 9.0)

    def test_grouped_by_position(self, tmp_path):
        """By position the groups are 0 2 1 | 1 3 4 | 5 1 9, of medians 1, 3 and 5."""
        trainer, table = update(tmp_path, self.REWARDS, 2, estimator="median", group_by="position")
        assert dict(zip(table["place"], table["advantage"], strict=True)) == {
            **{0: -1.0, 1: 1.0},  # A's first two; B's first is the pivot
            **{4: -2.0, 7: 1.0},  # B's second and C's second; C's first is the pivot
            **{5: -4.0, 8: 4.0},  # the extra rollouts; A's is the pivot
        }
        assert sorted(Counter(table["prompt"]).values()) == [2, 2, 2]
        assert history(trainer, "drawn/frac_groups_mixed") == [1.0]
        assert history(trainer, "drawn/reward") == pytest.approx([26 / 9])

    def test_rescaled(self, tmp_path):
        """0 0 2 has a MAD of 0; 0 1.5 2 a MAD of 0.5, and two of three advantages other than 0; 1 1 1 has none."""
        rewards = (0.0, 0.0, 2.0, 0.0, 1.5, 2.0, 1.0, 1.0, 1.0)
        trainer, table = update(tmp_path, rewards, 2, estimator="median-mad", rescale_by_nonzero=True)
        found = dict(zip(table["place"], table["advantage"], strict=True))
        assert found == pytest.approx({1: 0.0, 2: 6000.0, 3: -1.5 / 0.501 * 1.5, 5: 0.5 / 0.501 * 1.5, 7: 0.0, 8: 0.0})
        assert history(trainer, "advantage/abs_max") == pytest.approx([6000])

    @pytest.mark.parametrize(("drop_rule", "kept"), [("reward", [1, 2, 3, 5]), ("advantage", [0, 2, 4, 5])])
    def test_what_the_control_drops(self, drop_rule, kept, tmp_path):
        """0 2 2 (mean 4/3) loses its only failure by the release's rule; 3 -1 4 (mean 2) the worst of its rows too."""
        rewards = (0.0, 2.0, 2.0, 3.0, -1.0, 4.0)
        _, table = update(tmp_path, rewards, 2, estimator="mean-std-plus1", drop_rule=drop_rule)
        assert sorted(table["place"]) == kept
        assert (table["advantage"] < 0).sum() == (0 if drop_rule == "reward" else 2)


@pytest.mark.parametrize("group_by", ["prompt", "position"])
def test_the_normaliser_of_dapo_counts_all_rows_drawn(group_by, tmp_path):
    drawn = []

    def counting_reward(completion_ids, completions, **kwargs):
        drawn.append(sum(map(len, completion_ids)))
        return digits_reward(completions)

    settings = {"loss_type": "dapo", "count_dropped_tokens": True, "num_generations": 2, "group_by": group_by}
    trainer = trained(Released, tmp_path, counting_reward, **settings)
    for batch, tokens in zip(trainer.batches, drawn, strict=True):
        assert batch["num_items_in_batch"] == tokens > batch["completion_mask"].sum()
