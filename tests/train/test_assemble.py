from dataclasses import replace

import pytest
import torch
from tiny_training import Ours, same_training, trained
from training_jobs import RUN, changed
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo.train.assemble import save_weights

SMALL_STEP = {"learning_rate": 1e-6, "bf16": True, "max_steps": 1, "max_completion_length": 16}


def share_moved(trainer):
    """Share of the weights of an ordinary size (0.01 to 0.04, and there is a gradient) that training moved."""
    before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    matrices = {
        name: weight for name, weight in trainer.model.named_parameters() if "layers" in name and weight.dim() == 2
    }
    moved = [
        (weight != before[name])[(before[name].abs() > 0.01) & (before[name].abs() < 0.04)]
        for name, weight in matrices.items()
    ]
    return torch.cat(moved).float().mean().item()


class TestPrecision:
    def test_small_steps_in_bf16_move_fp32_weights(self, assembled, tmp_path):
        trainer = assembled(tmp_path, changed(**SMALL_STEP))
        assert {weight.dtype for weight in trainer.model.parameters()} == {torch.float32}
        assert share_moved(trainer) > 0.95


@pytest.mark.slow
def test_gradient_checkpointing_changes_nothing(tmp_path, recwarn):
    checkpointing = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}}
    plain, saving = (trained(Ours, tmp_path, **each) for each in ({"gradient_checkpointing": False}, checkpointing))
    assert saving.model.is_gradient_checkpointing and not plain.model.is_gradient_checkpointing
    assert any(loss != 0 for loss in plain.losses)
    assert same_training(plain, saving)
    assert not [str(each.message) for each in recwarn if "use_cache" in str(each.message)]


@pytest.mark.parametrize(("training", "attention"), [({}, "sdpa"), ({"attn_implementation": "eager"}, "eager")])
def test_attention_is_sdpa_unless_a_study_chooses(assembled, tmp_path, training, attention):
    assert assembled(tmp_path, changed(**training)).model.config._attn_implementation == attention


def test_what_is_saved_is_a_whole_model_in_fp32(assembled, inputs, tmp_path):
    trainer = assembled(tmp_path, replace(RUN, training={**RUN.training, "bf16": True}))
    save_weights(trainer, tmp_path / "weights")
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "weights", dtype="auto")
    start = AutoModelForCausalLM.from_pretrained(inputs / "model", dtype=torch.float32)
    assert all(torch.equal(value, start.state_dict()[name]) for name, value in saved.state_dict().items())
    assert saved.dtype == torch.float32 and type(saved) is type(start)
    assert AutoTokenizer.from_pretrained(tmp_path / "weights").padding_side == "left"
