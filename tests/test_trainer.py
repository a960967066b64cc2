"""MCGRPOTrainer against TRL's on a tiny random model: what is the same is the same bit for bit."""

import re
from collections import Counter

import pandas as pd
import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from mcgrpo import MCGRPOConfig, MCGRPOTrainer
from mcgrpo.toy.models import build

PROMPTS = 12
SPEC = {"architecture": "qwen3", "hidden_size": 64, "layers": 1, "heads": 2, "intermediate_size": 64, "seed": 1}
LOSSES = ("grpo", "dapo", "dr_grpo")


def dataset():
    questions = [f"Sam has {number} cards." for number in range(2, 2 + PROMPTS)]
    return Dataset.from_dict({"prompt": questions, "answer": [str(n) for n in range(PROMPTS)]})


def digits_reward(completions, **kwargs):
    """Discrete, often tied, often different within a group."""
    return [float(sum(map(int, re.findall(r"\d", completion))) % 3) for completion in completions]


class Spy:
    """Mixed into a trainer: keeps what every update is given, and its loss."""

    def __init__(self, *args, **kwargs):
        self.batches, self.losses = [], []
        super().__init__(*args, **kwargs)

    def _compute_loss(self, model, inputs):
        loss = super()._compute_loss(model, inputs)
        self.batches.append({name: value.clone() for name, value in inputs.items() if torch.is_tensor(value)})
        self.losses.append(loss.detach().clone())
        return loss


class TRL(Spy, GRPOTrainer):
    pass


class Ours(Spy, MCGRPOTrainer):
    pass


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """The model as a folder: with beta > 0, TRL loads its reference model from there."""
    global MODEL
    MODEL = tmp_path_factory.mktemp("models") / "tiny"
    build(SPEC, MODEL)


def trained(kind, tmp_path, reward=digits_reward, **settings):
    """A trainer after three optimizer steps."""
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(MODEL, padding_side="left")
    config = GRPOConfig if kind is TRL else MCGRPOConfig
    defaults = {
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_steps": 3,
        "max_completion_length": 8,
        "learning_rate": 1e-2,
        "beta": 0.04,
    }
    fixed = {"use_cpu": True, "bf16": False, "report_to": "none", "save_strategy": "no", "logging_steps": 1, "seed": 3}
    args = config(output_dir=str(tmp_path), **fixed, **{**defaults, **settings})
    trainer = kind(model=model, reward_funcs=reward, args=args, train_dataset=dataset(), processing_class=tokenizer)
    trainer.train()
    return trainer


def history(trainer, name):
    return [row[name] for row in trainer.state.log_history if name in row]


def prompts_of(trainer, batch):
    """The prompt of each row of an update."""
    return trainer.processing_class.batch_decode(batch["prompt_ids"], skip_special_tokens=True)


class TestMeanIsTRL:
    @pytest.mark.parametrize("num_iterations", [1, 2])
    @pytest.mark.parametrize("loss_type", LOSSES)
    def test_bit_for_bit(self, loss_type, num_iterations, tmp_path):
        scaled = loss_type != "dr_grpo"
        shared = {"loss_type": loss_type, "num_iterations": num_iterations}
        theirs = trained(TRL, tmp_path, **shared, scale_rewards="group" if scaled else "none")
        ours = trained(Ours, tmp_path, **shared, estimator="mean-std" if scaled else "mean")
        assert any(loss != 0 for loss in theirs.losses)
        assert all(torch.equal(a, b) for a, b in zip(theirs.losses, ours.losses, strict=True))
        for expected, found in zip(theirs.batches, ours.batches, strict=True):
            assert expected.keys() == found.keys()
            assert all(torch.equal(expected[name], found[name]) for name in expected)
        for name in ("loss", "grad_norm", "reward", "reward_std", "frac_reward_zero_std", "kl", "entropy"):
            assert history(theirs, name) == history(ours, name), name
        weights = dict(ours.model.named_parameters())
        assert all(torch.equal(value, weights[name]) for name, value in theirs.model.named_parameters())

    def test_across_accumulated_and_reused_generations(self, tmp_path):
        shared = {"gradient_accumulation_steps": 2, "num_iterations": 2, "loss_type": "dapo"}
        theirs = trained(TRL, tmp_path, **shared)
        ours = trained(Ours, tmp_path, **shared, estimator="mean-std")
        assert all(torch.equal(a, b) for a, b in zip(theirs.losses, ours.losses, strict=True))

    def test_the_median_is_not(self, tmp_path):
        """So that the tests above can fail."""
        theirs = trained(TRL, tmp_path)
        ours = trained(Ours, tmp_path, estimator="median-mad")
        assert not any(torch.equal(a, b) for a, b in zip(theirs.losses, ours.losses, strict=True))


class TestGroups:
    @pytest.mark.parametrize("estimator", ["median-mad", "median", "mean-std-plus1"])
    @pytest.mark.parametrize("num_generations", [2, 4, 8])
    def test_exactly_g_rows_of_each_prompt_reach_the_update(self, estimator, num_generations, tmp_path):
        trainer = trained(Ours, tmp_path, estimator=estimator, num_generations=num_generations)
        for batch in trainer.batches:
            counts = Counter(prompts_of(trainer, batch))
            assert len(counts) == 8 // num_generations
            assert set(counts.values()) == {num_generations}

    def test_rewards_are_grouped_by_prompt(self, tmp_path):
        """A reward that is the same within a prompt and differs between prompts leaves nothing to learn from."""

        def prompt_reward(prompts, **kwargs):
            return [float(re.search(r"\d+", prompt).group()) for prompt in prompts]

        trainer = trained(Ours, tmp_path, reward=prompt_reward, estimator="median")
        assert all((batch["advantages"] == 0).all() for batch in trainer.batches)

    def test_one_more_rollout_than_g_is_drawn_and_scored(self, tmp_path):
        seen = []

        def counting_reward(prompts, completions, answer, **kwargs):
            assert len(prompts) == len(completions) == len(answer)
            seen.append(
                [
                    Counter(prompts),
                    {p: {a for q, a in zip(prompts, answer, strict=True) if q == p} for p in set(prompts)},
                ]
            )
            return digits_reward(completions)

        trained(Ours, tmp_path, reward=counting_reward, estimator="median-mad", num_generations=4)
        for counts, answers in seen:
            assert list(counts.values()) == [5, 5]
            assert all(len(of_prompt) == 1 for of_prompt in answers.values())

    def test_a_mixed_group_is_refused(self, tmp_path):
        trainer = trained(Ours, tmp_path, estimator="median-mad")
        trainer.model.train()
        rows = [trainer.train_dataset[index] for index in (0, 0, 1, 0)]
        with pytest.raises(ValueError, match="more than one prompt"):
            trainer._generate_and_score_completions(rows)
        with pytest.raises(ValueError, match="3 rows on this process do not divide into groups of 4"):
            trainer._generate_and_score_completions(rows[:3])

    def test_advantages_belong_to_their_completions(self, tmp_path):
        """Recomputed from the kept rows alone: the pivot's reward is the median, so centring on it must agree."""
        trainer = trained(Ours, tmp_path, estimator="median", num_generations=8)
        for batch in trainer.batches:
            texts = trainer.processing_class.batch_decode(batch["completion_ids"], skip_special_tokens=True)
            rewards = torch.tensor(digits_reward(texts))
            centre = rewards - batch["advantages"]
            assert (centre == centre[0]).all()
            assert (rewards > centre[0]).sum() <= 4 and (rewards < centre[0]).sum() <= 4


class TestLosses:
    def test_dapo_normalises_by_the_tokens_of_the_kept_rows(self, tmp_path):
        trainer = trained(Ours, tmp_path, estimator="median-mad", loss_type="dapo")
        for batch in trainer.batches:
            assert batch["num_items_in_batch"] == batch["completion_mask"].sum()

    def test_evaluation_is_trls_own(self, tmp_path):
        trainer = trained(Ours, tmp_path, estimator="median-mad")
        trainer.args.per_device_eval_batch_size = 4
        drawn = []
        trainer.reward_funcs = [
            lambda completions, **kwargs: drawn.append(len(completions)) or [0.0] * len(completions)
        ]
        trainer.reward_func_names = ["counted"]
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

    def test_diagnostics_and_seconds_are_logged_at_every_step(self, tmp_path):
        trainer = trained(Ours, tmp_path, estimator="median-mad")
        for name in ("advantage/abs_max", "advantage/frac_scale_zero", "drawn/frac_reward_zero_std"):
            assert len(history(trainer, name)) == 3
        for phase in ("generation", "rewards", "logprobs", "update"):
            assert all(seconds > 0 for seconds in history(trainer, f"seconds/{phase}"))

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

    def test_an_unscorable_rollout_is_left_out_of_the_update(self, tmp_path):
        def first_unscorable(completions, **kwargs):
            return [None if row % 3 == 0 else value for row, value in enumerate(digits_reward(completions))]

        trainer = trained(Ours, tmp_path, reward=first_unscorable, estimator="median", num_generations=2)
        assert history(trainer, "drawn/frac_unscorable") == pytest.approx([1 / 3] * 3)
        for batch in trainer.batches:
            texts = trainer.processing_class.batch_decode(batch["completion_ids"], skip_special_tokens=True)
            rewards = torch.tensor(digits_reward(texts))
            by_prompt = pd.DataFrame({"p": prompts_of(trainer, batch), "r": rewards, "a": batch["advantages"]})
            for _, group in by_prompt.groupby("p"):  # the two scorable ones, centred on their middle
                assert group["a"].tolist() == pytest.approx((group["r"] - group["r"].mean()).tolist())


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"estimator": "medain"}, "unknown estimator 'medain'"),
            ({"num_generations": 3}, "divisible by num_generations"),
            ({"scale_rewards": "none"}, "set `estimator`"),
            ({"multi_objective_aggregation": "normalize_then_sum"}, "set `estimator`"),
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

    def test_tools(self):
        with pytest.raises(ValueError, match="`tools`"):
            MCGRPOTrainer(model="unused", reward_funcs=digits_reward, tools=[print])
