import pytest
import studies
import torch
import yaml
from training_jobs import changed

from mcgrpo.train.arguments import OURS, arguments_of
from mcgrpo.train.sharding import ZERO3

SCHEMA = yaml.safe_load((studies.ROOT / "workflow/schemas/study.schema.yaml").read_text())
LORA = {"r": 4, "lora_alpha": 8.0, "lora_dropout": 0.0, "target_modules": ["q_proj", "v_proj"]}


def test_what_is_ours_is_not_handed_to_trl(tmp_path):
    ours = {"select_checkpoint": "last", "eval_steps": 5, "sharding": "none", "attn_implementation": "eager"}
    args = arguments_of(changed(**ours, lora=LORA), tmp_path, 0)
    assert set(OURS) == {*ours, "lora"}
    assert not args.fsdp and args.deepspeed is None and args.eval_strategy == "no"


class TestGradientCheckpointing:
    def test_it_is_not_reentrant(self, tmp_path):
        args = arguments_of(changed(gradient_checkpointing=True), tmp_path, 0)
        assert args.gradient_checkpointing and args.gradient_checkpointing_kwargs == {"use_reentrant": False}

    @pytest.mark.parametrize("wanted", [True, False])
    def test_under_fsdp_it_is_that_of_fsdp(self, wanted, tmp_path):
        args = arguments_of(changed(gradient_checkpointing=wanted, sharding="fsdp"), tmp_path, 2)
        assert not args.gradient_checkpointing
        assert args.fsdp_plugin_args["activation_checkpointing"] is wanted


class TestSharding:
    def test_fsdp_is_as_transformers_reads_it(self, tmp_path):
        read = arguments_of(changed(sharding="fsdp"), tmp_path, 2).fsdp_plugin_args
        assert read["fsdp_version"] == 2 and read["reshard_after_forward"] is True
        assert read["auto_wrap_policy"] == "TRANSFORMER_BASED_WRAP" and read["state_dict_type"] == "FULL_STATE_DICT"
        assert "mixed_precision_policy" not in read

    def test_fsdp_in_bf16_rounds_neither_what_modules_return_nor_sums_of_gradients(self, tmp_path, monkeypatch):
        monkeypatch.setattr("transformers.training_args.is_torch_bf16_gpu_available", lambda: True)
        policy = arguments_of(changed(sharding="fsdp", bf16=True), tmp_path, 2).fsdp_plugin_args[
            "mixed_precision_policy"
        ]
        assert policy.param_dtype == torch.bfloat16
        assert policy.reduce_dtype == torch.float32 and policy.output_dtype is None

    def test_zero3_is_as_transformers_reads_it(self, tmp_path):
        pytest.importorskip("deepspeed")
        read = arguments_of(changed(sharding="zero3", learning_rate=1e-6), tmp_path, 2).hf_deepspeed_config
        assert read.is_zero3() and not read.is_offload()
        assert read.get_value("train_micro_batch_size_per_gpu") == 4
        assert read.get_value("bf16.enabled") is False
        assert ZERO3["train_batch_size"] == "auto"

    @pytest.mark.parametrize("sharding", ["zero3", "fsdp"])
    @pytest.mark.parametrize("gpus", [0, 1])
    def test_one_process_is_not_sharded(self, sharding, gpus, tmp_path):
        with pytest.raises(ValueError, match=f"sharding={sharding} divides the weights .* but gpus={gpus}"):
            arguments_of(changed(sharding=sharding), tmp_path, gpus)


def test_schedules_are_those_of_transformers_that_need_no_arguments():
    from transformers.trainer_utils import SchedulerType

    known = SCHEMA["$defs"]["training"]["properties"]["lr_scheduler_type"]["enum"]
    need_arguments = {
        "cosine_with_min_lr", "cosine_warmup_with_min_lr", "warmup_stable_decay", "reduce_lr_on_plateau", "greedy",
    }  # fmt: skip
    assert {*known} == {kind.value for kind in SchedulerType} - need_arguments
