import pytest
import torch
from tiny_training import Ours, same_training, trained
from training_jobs import changed
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo.train.assemble import save_weights


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


def test_a_small_step_in_bf16_moves_weights_that_are_saved_as_a_whole_model_in_fp32(assembled, inputs, tmp_path):
    trainer = assembled(tmp_path, changed(learning_rate=1e-6, bf16=True, max_steps=1, max_completion_length=16))
    trainer.train()
    save_weights(trainer, tmp_path / "weights")
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "weights", dtype="auto")
    start = AutoModelForCausalLM.from_pretrained(inputs / "model", dtype=torch.float32)
    assert saved.dtype == torch.float32 and type(saved) is type(start)
    moved = torch.cat([(value - start.state_dict()[name]).flatten() for name, value in saved.state_dict().items()])
    assert (moved != 0).float().mean() > 0.9 and moved.abs().max() < 1e-5
    assert AutoTokenizer.from_pretrained(tmp_path / "weights").padding_side == "left"
