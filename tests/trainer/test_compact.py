"""Compact updates: fewer rows computed, the same gradient. Two processes: tests/trainer/test_processes.py."""

import random

import pytest
import torch
from scripted import Gradients
from tiny_training import TRL, Ours, digits_reward, history, same_training, trained, trainer_of

from mcgrpo.trainer import compact


class Uneven(Ours):
    """Completions of 1 to 24 tokens, the same at every call."""

    def _generate_single_turn(self, prompt_ids, *args, **kwargs):
        draw = random.Random(0)
        ids = [[draw.randrange(3, 60) for _ in range(draw.randrange(24))] for _ in prompt_ids]
        return [[*each, self.processing_class.eos_token_id] for each in ids], None


class Truncated(Uneven):
    """Every other one of them is cut off."""

    def _generate_single_turn(self, prompt_ids, *args, **kwargs):
        ids, logprobs = super()._generate_single_turn(prompt_ids)
        return [each if row % 2 else [3, *each[:-1]] for row, each in enumerate(ids)], logprobs


def gradients(tmp_path, compact_updates, reward=digits_reward, kind=Uneven, **settings):
    """A training and its gradients, none clipped: a clip would hide a loss of another scale."""
    defaults = {"beta": 0.0, "estimator": "median-mad", "max_grad_norm": 0.0, "max_completion_length": 24}
    settings = {**defaults, "learning_rate": 1e-6, **settings}
    trainer = trainer_of(kind, tmp_path, reward, compact_updates=compact_updates, **settings)
    trainer.add_callback(found := Gradients())
    trainer.train()
    return trainer, found.steps


def rows(trainer):
    return [len(batch["advantages"]) for batch in trainer.batches]


def whole_and_part(tmp_path, **settings):
    """Trainings without and with compact updates, whose gradients are the same."""
    whole, expected = gradients(tmp_path, False, **settings)
    part, found = gradients(tmp_path, True, **settings)
    assert len(expected) == len(found) == part.state.global_step
    for one, other in zip(expected, found, strict=True):
        assert one.abs().max() > 0 and (one - other).abs().max() < 1e-4 * one.abs().max()
    return whole, part


WINDOWS = {
    "whole": {"gradient_accumulation_steps": 1},
    "accumulated": {"gradient_accumulation_steps": 4, "per_device_train_batch_size": 4},
    "reused": {"num_iterations": 2, "max_steps": 4},
    "reused and accumulated": {"num_iterations": 2, "gradient_accumulation_steps": 2, "max_steps": 4},
    "two steps of a generation": {"steps_per_generation": 4, "gradient_accumulation_steps": 2, "max_steps": 4},
    "two generations of a step": {"steps_per_generation": 2, "gradient_accumulation_steps": 4},
    "out of step": {"steps_per_generation": 3, "gradient_accumulation_steps": 2},
}


class TestGradients:
    @pytest.mark.parametrize(
        "windows",
        [
            pytest.param(WINDOWS[name], id=name, marks=pytest.mark.law if name == "whole" else pytest.mark.slow)
            for name in WINDOWS
        ],
    )
    @pytest.mark.parametrize("loss_type", ["grpo", "dapo", "dr_grpo"])
    def test_are_those_of_all_rows(self, loss_type, windows, tmp_path):
        whole, part = whole_and_part(tmp_path, loss_type=loss_type, **windows)
        assert sum(rows(part)) < sum(rows(whole))
        assert history(whole, "loss") == pytest.approx(history(part, "loss"), rel=1e-3, abs=1e-4)

    @pytest.mark.parametrize("loss_type", ["cispo", "sapo", "luspo", "vespo"])
    @pytest.mark.slow
    def test_of_trls_other_losses_too(self, loss_type, tmp_path):
        settings = {"loss_type": loss_type, **WINDOWS["reused and accumulated"]}
        if loss_type == "luspo":
            settings["importance_sampling_level"] = "sequence"
        whole, part = whole_and_part(tmp_path, **settings)
        assert sum(rows(part)) < sum(rows(whole))

    @pytest.mark.parametrize("reused", [{}, {"num_iterations": 2, "steps_per_generation": 4, "max_steps": 6}])
    def test_of_0_are_a_step_all_the_same(self, reused, tmp_path):
        """The optimizer's momentum goes on where nothing is left to compute, as it does with all rows."""

        def only_at_first(completions, **_):
            return [0.0] * len(completions) if next(calls) else digits_reward(completions)

        ends = []
        for compact_updates in (False, True):
            calls = iter(range(9))
            settings = {"reward": only_at_first, "learning_rate": 1e-3, "gradient_accumulation_steps": 2}
            trainer, found = gradients(tmp_path, compact_updates, **settings, **reused)
            assert [bool(step.any()) for step in found] == [True] * (len(found) - 2) + [False] * 2
            ends.append(torch.cat([each.flatten() for each in trainer.model.parameters()]))
        assert rows(trainer)[-4:] == [0, 1] * 2
        assert (ends[0] - ends[1]).abs().max() < 1e-5

    def test_rows_that_are_left_out_have_no_log_probabilities_computed(self, tmp_path, monkeypatch):
        computed = []
        theirs = compact.ResumableTrainer._get_per_token_logps_and_entropies

        def counted(self, model, input_ids, *args, **kwargs):
            if not torch.is_grad_enabled():
                computed.append(len(input_ids))
            return theirs(self, model, input_ids, *args, **kwargs)

        monkeypatch.setattr(compact.ResumableTrainer, "_get_per_token_logps_and_entropies", counted)
        trainer, _ = gradients(tmp_path, True, num_iterations=2, max_steps=2)
        assert computed == rows(trainer)[:1] and computed[0] < 8

    @pytest.mark.parametrize("beta", [0.0, 0.04])
    def test_only_tokens_of_completions_are_projected_on_the_vocabulary(self, beta, tmp_path, monkeypatch):
        utils = pytest.importorskip("trl.trainer.utils")
        if not hasattr(utils, compact.IN_LOSS_ONLY):
            pytest.skip("this TRL projects the same tokens on all devices")
        projected, theirs = [], utils._ChunkedLogProbFunction.apply

        def counted(hidden, *args):
            projected.append(len(hidden))
            return theirs(hidden, *args)

        monkeypatch.setattr(utils._ChunkedLogProbFunction, "apply", counted)
        trainer, _ = gradients(tmp_path, True, beta=beta, max_steps=1)
        in_loss = sum(int(batch["completion_mask"].sum()) for batch in trainer.batches)
        assert len(projected) == (2 if beta else 1) and {*projected} == {in_loss}
        assert compact.trl.trainer.utils._use_triton(torch.device("cpu")) is False, "put back"


PENALTY = {"beta": 0.04, **WINDOWS["reused and accumulated"]}


class TestWithAPenalty:
    """beta > 0: every row is computed, packed by length."""

    @pytest.mark.law
    def test_the_gradient_is_the_same_and_less_padding_is_computed(self, tmp_path):
        whole, part = whole_and_part(tmp_path, **PENALTY)
        assert rows(part) == rows(whole)
        tokens, places = (
            [sum(value(batch["completion_mask"]) for batch in trainer.batches) for trainer in (whole, part)]
            for value in (torch.sum, torch.numel)
        )
        assert tokens[0] == tokens[1] and places[1] < 0.8 * places[0]

    def test_truncated_completions_that_are_masked_are_left_out(self, tmp_path):
        whole, part = whole_and_part(tmp_path, **PENALTY, mask_truncated_completions=True, kind=Truncated)
        assert sum(rows(part)) < sum(rows(whole))


class TestWhereItIsNotExact:
    @pytest.mark.parametrize(
        "settings",
        [
            {"loss_type": "bnpo"},
            {"top_entropy_quantile": 0.5},
            {"entropy_coef": 0.01},
            {"use_adaptive_entropy": True, "entropy_target": 0.2},
        ],
        ids=lambda settings: next(iter(settings)),
    )
    def test_it_is_off(self, settings, tmp_path):
        settings |= {"gradient_accumulation_steps": 2, "beta": 0.0}
        whole, part = (trained(Ours, tmp_path, compact_updates=each, **settings) for each in (False, True))
        assert any(loss != 0 for loss in whole.losses)
        assert same_training(whole, part)

    def test_it_is_off_where_a_router_is_to_be_balanced(self, tmp_path):
        trainer = trainer_of(Ours, tmp_path, beta=0.0)
        assert trainer.packs and trainer.drops
        trainer.aux_loss_enabled = True
        assert not trainer.packs and not trainer.drops

    def test_with_one_micro_batch_and_a_penalty_it_is_trl_bit_for_bit(self, tmp_path):
        theirs = trained(TRL, tmp_path, num_iterations=2)
        ours = trained(Ours, tmp_path, num_iterations=2, estimator="mean-std")
        assert [loss.item() for loss in theirs.losses] == [loss.item() for loss in ours.losses]
