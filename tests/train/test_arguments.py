from types import SimpleNamespace

import pytest
import torch
from training_jobs import changed

from mcgrpo.train.arguments import arguments_of
from mcgrpo.train.sharding import check_sharded


class TestSharding:
    @pytest.mark.parametrize("checkpointing", [True, False])
    def test_fsdp_is_as_transformers_reads_it(self, checkpointing, tmp_path):
        args = arguments_of(changed(sharding="fsdp", gradient_checkpointing=checkpointing), tmp_path, 2)
        read = args.fsdp_plugin_args
        assert read["fsdp_version"] == 2 and read["reshard_after_forward"] is True
        assert read["auto_wrap_policy"] == "TRANSFORMER_BASED_WRAP" and read["state_dict_type"] == "FULL_STATE_DICT"
        assert not args.gradient_checkpointing and read["activation_checkpointing"] is checkpointing
        assert "mixed_precision_policy" not in read

    def test_a_reference_of_fsdp_starts_on_the_cpu(self, tmp_path):
        """TRL's own choice, "auto", spreads it over the GPUs that each process sees; no CPU can show that."""
        assert arguments_of(changed(sharding="fsdp"), tmp_path, 2).model_init_kwargs == {"device_map": None}
        assert arguments_of(changed(), tmp_path, 0).model_init_kwargs is None

    def test_fsdp_in_bf16_rounds_neither_what_modules_return_nor_sums_of_gradients(self, tmp_path, monkeypatch):
        monkeypatch.setattr("transformers.training_args.is_torch_bf16_gpu_available", lambda: True)
        policy = arguments_of(changed(sharding="fsdp", bf16=True), tmp_path, 2).fsdp_plugin_args[
            "mixed_precision_policy"
        ]
        assert policy.param_dtype == torch.bfloat16
        assert policy.reduce_dtype == torch.float32 and policy.output_dtype is None

    @pytest.mark.parametrize("gpus", [0, 1])
    def test_one_process_is_not_sharded(self, gpus, tmp_path):
        with pytest.raises(ValueError, match=f"sharding=fsdp divides the weights .* but gpus={gpus}"):
            arguments_of(changed(sharding="fsdp"), tmp_path, gpus)

    def test_weights_that_accelerate_does_not_divide_are_refused(self):
        """As on a CPU, where it passes over fsdp."""
        accelerator = SimpleNamespace(device="cpu", num_processes=2)
        trainer = SimpleNamespace(args=SimpleNamespace(fsdp=True), is_fsdp_enabled=False, accelerator=accelerator)
        with pytest.raises(ValueError, match=r"does not divide the weights \(2 process\(es\) on cpu\)"):
            check_sharded(trainer)

    @pytest.mark.parametrize(("settings", "gpus", "alone"), [({}, 0, True), ({"sharding": "fsdp"}, 2, False)])
    def test_a_checkpoint_to_select_is_of_the_model_alone_where_transformers_loads_that(
        self, settings, gpus, alone, tmp_path
    ):
        args = arguments_of(changed(select_checkpoint="best-on-test", **settings), tmp_path, gpus)
        assert args.load_best_model_at_end and args.save_only_model is alone
        assert args.save_total_limit == (1 if alone else None)


def test_what_needs_vllm_is_refused_or_left_where_it_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setattr("mcgrpo.train.rollout_engine.find_spec", lambda name: None)
    served = {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": "http://there"}
    assert arguments_of(changed(**served), tmp_path, 0).ddp_timeout == 7200
    flash = {"attn_implementation": "flash_attention_2", "bf16": True, "lora": {"r": 4}, "use_vllm": True}
    with pytest.raises(ValueError, match=r"\(lora\) draws in fp32"):
        arguments_of(changed(**flash), tmp_path, 1)


def test_stop_strings_are_refused_where_transformers_draws(tmp_path):
    with pytest.raises(ValueError, match=r"training\.stop needs vLLM"):
        arguments_of(changed(stop=["\nQuestion:"]), tmp_path, 0)
