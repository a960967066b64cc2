"""In bf16 each weight is cast once for a generation, and autocast is nowhere else than in TRL."""

from contextlib import nullcontext
from types import MethodType
from unittest.mock import PropertyMock, patch

import pytest
import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from casts import Casts
from peft import LoraConfig
from tiny_training import TRL, Ours, trainer_of

pytestmark = pytest.mark.law


def casts_of_a_generation(kind, tmp_path, **settings):
    """Of an MLP's weight, in each generation of a training."""
    trainer = trainer_of(kind, tmp_path, max_steps=2, **settings)
    draw, numbers = trainer._generate_single_turn, []

    def counted(trainer, *args, **kwargs):
        with Casts(weight for name, weight in trainer.model.named_parameters() if "up_proj" in name) as casts:
            drawn = draw(*args, **kwargs)
        numbers.append(casts.number)
        return drawn

    trainer._generate_single_turn = MethodType(counted, trainer)
    trainer.train()
    return numbers


def test_once_a_generation(tmp_path):
    assert casts_of_a_generation(Ours, tmp_path, bf16=True) == [1, 1]
    assert casts_of_a_generation(Ours, tmp_path, bf16=False) == [0, 0]


def test_trl_casts_for_every_token(tmp_path):
    """If this fails, `MCGRPOTrainer._cast_weights_once` may go."""
    assert casts_of_a_generation(TRL, tmp_path, bf16=True) == [8, 8]  # tokens


@pytest.mark.parametrize("kind", [TRL, Ours])
def test_adapters_draw_in_fp32_as_with_trl(kind, tmp_path):
    """PEFT's `generate` is that of the model within, around whose forward pass there is no autocast."""
    lora = LoraConfig(r=2, target_modules=["q_proj"])
    assert casts_of_a_generation(kind, tmp_path, bf16=True, peft_config=lora) == [0, 0]


def test_not_around_a_users_function(tmp_path):
    seen = []

    def rollout_func(prompts, trainer):
        seen.append(torch.is_autocast_enabled(trainer.accelerator.device.type))
        ids = [[5, 6]] * len(prompts)
        return {"prompt_ids": ids, "completion_ids": ids, "logprobs": None}

    trainer = trainer_of(Ours, tmp_path, max_steps=1, bf16=True)
    trainer.rollout_func = rollout_func
    trainer.train()
    assert seen == [False]


@pytest.mark.parametrize("kind", [DistributedType.FSDP, DistributedType.DEEPSPEED])
def test_not_of_sharded_weights_nor_where_others_generate(kind, tmp_path):
    trainer = trainer_of(Ours, tmp_path, bf16=True)
    assert not isinstance(trainer._cast_weights_once(), nullcontext)
    by_others = [(trainer.args, "use_transformers_continuous_batching", True), (trainer, "use_vllm", True)]
    for of, name, value in [*by_others, (trainer, "tools", [print])]:
        with patch.object(of, name, value):
            assert isinstance(trainer._cast_weights_once(), nullcontext), name
    with patch.object(Accelerator, "distributed_type", PropertyMock(return_value=kind)):
        assert isinstance(trainer._cast_weights_once(), nullcontext)
