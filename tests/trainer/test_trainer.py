"""MCGRPOTrainer against TRL's on a tiny random model: what is the same is the same bit for bit."""

from collections import Counter

import pandas as pd
import pytest
import torch
from tiny_training import TRL, Ours, dataset, digits_reward, history, same_training, texts_of, trained, trainer_of
from trl import GRPOConfig

from mcgrpo import MCGRPOConfig, MCGRPOTrainer

SHARED = {
    **{f"{loss}-{n}": {"loss_type": loss, "num_iterations": n} for loss in ("grpo", "dapo", "dr_grpo") for n in (1, 2)},
    "accumulated": {"loss_type": "dapo", "gradient_accumulation_steps": 2, "num_iterations": 2},
    "bf16": {"bf16": True},
}
"""Settings of TRL and ours."""


def prompts_of(trainer, batch):
    """The prompt of each row of an update."""
    return texts_of(trainer, batch, "prompt_ids")


@pytest.mark.law
class TestMeanIsTRL:
    @pytest.mark.parametrize("shared", SHARED.values(), ids=SHARED)
    def test_bit_for_bit(self, shared, tmp_path):
        scaled = shared.get("loss_type") != "dr_grpo"
        theirs = trained(TRL, tmp_path, **shared, scale_rewards="group" if scaled else "none")
        ours = trained(Ours, tmp_path, **shared, estimator="mean-std" if scaled else "mean", compact_updates=False)
        assert any(loss != 0 for loss in theirs.losses)
        assert same_training(theirs, ours)
        for name in ("loss", "grad_norm", "reward", "reward_std", "frac_reward_zero_std", "kl", "entropy"):
            assert history(theirs, name) == history(ours, name), name


@pytest.mark.law
class TestGroups:
    @pytest.mark.parametrize("estimator", ["median-mad", "median", "mean-std-plus1"])
    @pytest.mark.parametrize("num_generations", [2, 4, 8])
    def test_exactly_g_rows_of_each_prompt_reach_the_update(self, estimator, num_generations, tmp_path):
        trainer = trained(Ours, tmp_path, estimator=estimator, num_generations=num_generations)
        for batch in trainer.batches:
            counts = Counter(prompts_of(trainer, batch))
            assert len(counts) == 8 // num_generations
            assert set(counts.values()) == {num_generations}

    def test_one_more_rollout_than_g_is_drawn_and_scored(self, tmp_path):
        seen = []

        def counting_reward(prompts, completions, answer, **kwargs):
            assert len(prompts) == len(completions) == len(answer)
            seen.append(Counter(zip(prompts, answer, strict=True)))  # each prompt with its own answer
            return digits_reward(completions)

        trained(Ours, tmp_path, reward=counting_reward, estimator="median-mad", num_generations=4)
        assert [list(counts.values()) for counts in seen] == [[5, 5]] * 3

    def test_a_mixed_group_is_refused(self, tmp_path):
        trainer = trained(Ours, tmp_path, estimator="median-mad")
        trainer.model.train()
        rows = [trainer.train_dataset[index] for index in (0, 0, 1, 0)]
        with pytest.raises(ValueError, match="more than one prompt"):
            trainer._generate_and_score_completions(rows)
        with pytest.raises(ValueError, match="3 rows on this process do not divide into groups of 4"):
            trainer._generate_and_score_completions(rows[:3])


class TestFlips:
    """Sign flips, against the same run without them up to its first update."""

    @pytest.mark.parametrize("rule", ["bernoulli", "exact"])
    def test_at_rate_1_every_sign_of_the_first_update_is_the_other(self, rule, tmp_path):
        plain, flipped = (
            trained(Ours, tmp_path, max_steps=1, advantage_flip_rate=rate, advantage_flip_rule=rule)
            for rate in (0.0, 1.0)
        )
        assert (plain.batches[0]["advantages"] != 0).any()
        assert torch.equal(plain.batches[0]["advantages"], -flipped.batches[0]["advantages"])
        assert torch.equal(plain.batches[0]["completion_ids"], flipped.batches[0]["completion_ids"])
        assert history(flipped, "advantage/frac_flipped") == [1.0]
        assert flipped.losses[0] != plain.losses[0]

    @pytest.mark.slow
    def test_seeds_steps_and_generations_have_flips_of_their_own(self, tmp_path):
        """Seen in the signs of a reward that never changes, so that rollouts do not matter."""

        def alternating(completions, **kwargs):
            return [float(row % 2) for row in range(len(completions))]

        def signs(**settings):
            run = trained(Ours, tmp_path, alternating, estimator="mean", advantage_flip_rate=0.5, **settings)
            return [tuple(batch["advantages"].sort().values.tolist()) for batch in run.batches]

        first = signs()
        assert first == signs() != signs(seed=4)
        assert len({*first}) > 1
        of_one_step = signs(gradient_accumulation_steps=4, steps_per_generation=1, max_steps=1)
        assert len(of_one_step) == 4 and len({*of_one_step}) > 1


def test_evaluation_is_trls_own(tmp_path):
    drawn = []

    def counted(completions, **kwargs):
        drawn.append(len(completions))
        return digits_reward(completions)

    trainer = trainer_of(Ours, tmp_path, counted, estimator="median-mad", per_device_eval_batch_size=4)
    trainer.evaluate(dataset().select(range(2)))
    assert sum(drawn) == 8  # 2 prompts x G, no extra rollout


class TestLogs:
    def test_the_true_mean_reward_of_all_rollouts_is_logged(self, tmp_path):
        scored = []

        def kept_reward(completions, **kwargs):
            scored.append(digits_reward(completions))
            return scored[-1]

        trainer = trained(Ours, tmp_path, reward=kept_reward, estimator="median-mad", num_generations=2)
        assert history(trainer, "drawn/reward") == pytest.approx([sum(row) / len(row) for row in scored])
        assert len(scored[0]) == 12
        assert history(trainer, "reward") != history(trainer, "drawn/reward")  # TRL's is over the kept rows

    def test_logged_completions_and_extras_stay_aligned(self, tmp_path):
        def annotated(prompts, completions, log_extra, **kwargs):
            log_extra(
                "about", [f"{prompt}|{completion}" for prompt, completion in zip(prompts, completions, strict=True)]
            )
            return digits_reward(completions)

        trainer = trained(Ours, tmp_path, reward=annotated, estimator="median", log_completions=True)
        files = sorted((tmp_path / "completions").glob("*.parquet"))
        assert len(files) == 3
        for file in files:
            table = pd.read_parquet(file)
            assert len(table) == 8
            assert (table["about"] == table["prompt"] + "|" + table["completion"]).all()
            assert table["annotated"].tolist() == digits_reward(table["completion"])
            for _, group in table.groupby("prompt"):
                centres = group["annotated"] - group["advantage"]
                assert centres.nunique() == 1 and len(group) == 4
        assert len(trainer._logs["advantages"]) == 8


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"estimator": "medain"}, "unknown estimator 'medain'"),
            ({"num_generations": 3}, "divisible by num_generations"),
            ({"extra_rollouts": 1.0}, r"a whole number of at least 0, not 1\.0"),
            ({"advantage_flip_rate": 1.1}, "a flip rate is a share"),
            ({"scale_rewards": "none", "estimator": "median-mad"}, "leave scale_rewards out.*'mean' is what it means"),
            ({"scale_rewards": "rows"}, "leave scale_rewards out"),
            ({"estimator": "mean-std", "mad_zero": "std"}, "'mean-std' does not use mad_zero='std'"),
            ({"multi_objective_aggregation": "normalize_then_sum"}, "leave it out, and set reward_weights"),
        ],
    )
    def test_configurations(self, settings, message, tmp_path):
        with pytest.raises(ValueError, match=message):
            MCGRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, per_device_train_batch_size=8, **settings)

    def test_an_even_group_is_warned_of(self, tmp_path):
        with pytest.warns(UserWarning, match="even size"):
            MCGRPOConfig(
                output_dir=str(tmp_path), use_cpu=True, bf16=False, per_device_train_batch_size=9, num_generations=3
            )

    def test_arguments_of_trls_own(self, tmp_path):
        with pytest.raises(TypeError, match=r"needs args=MCGRPOConfig\(...\), not GRPOConfig"):
            MCGRPOTrainer(model="unused", reward_funcs=digits_reward, args=GRPOConfig(str(tmp_path), use_cpu=True))
