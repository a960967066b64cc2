"""Batches, GPUs and settings of vLLM that a training does not fit are refused, with the arithmetic."""

import pytest
from studies import changed, load, refused

from mcgrpo.study.check import check
from mcgrpo.study.fit import check_fits, with_batch

TRAINING = {"prompts_per_step": 40}
ROWS = {"per_device_train_batch_size": 24}
SERVER = {"use_vllm": True, "vllm_mode": "server"}
FLASH = {"attn_implementation": "flash_attention_2"}
NAMED = {"vllm_server_base_url": "http://there"}
MINI = load("mini")


@pytest.mark.parametrize(
    ("gpus", "training", "fault"),
    [
        (6, TRAINING, r"prompts_per_step=40 x num_generations=16 rows do not divide among 6 process\(es\)"),
        (0, ROWS, r"=16 does not divide the 24 rows .* \(per_device_train_batch_size=24 x steps_per_generation=1\)"),
        (0, {}, "training needs prompts_per_step or per_device_train_batch_size"),
        (2, TRAINING | {"use_vllm": True, "vllm_tensor_parallel_size": 3}, "=3 does not divide the training's 2 pr"),
        (
            2,
            TRAINING | {"use_vllm": True, "vllm_max_model_length": 24, "max_completion_length": 24},
            "=24 leaves no",
        ),
        (0, TRAINING | {"stop": ["Question:"]}, "training.stop needs vLLM: set use_vllm: true"),
        (1, TRAINING | {"sharding": "fsdp"}, "sharding=fsdp divides the weights among processes"),
        (1, TRAINING | FLASH, r"attn_implementation=flash_attention_2 .*: set bf16: true"),
        (1, TRAINING | FLASH | {"bf16": True, "lora": {"r": 4}}, r"\(lora\) draws in fp32: set use_vllm"),
    ],
)
def test_what_does_not_fit_is_refused(gpus, training, fault):
    with pytest.raises(ValueError, match=fault):
        check_fits(with_batch(training, 16, gpus), 16, gpus)


def test_what_fits_is_not():
    served = TRAINING | SERVER | NAMED | {"vllm_tensor_parallel_size": 2, "stop": ["Question:"]}
    check_fits(with_batch(served, 2, 1), 2, 1)
    check_fits(ROWS | {"gradient_accumulation_steps": 2}, 16, 0)
    in_bf16 = with_batch(TRAINING | FLASH | {"bf16": True}, 2, 1)
    check_fits(in_bf16, 2, 1)
    check_fits(in_bf16 | {"lora": {"r": 4}, "use_vllm": True}, 2, 1)
    assert "prompts_per_step" in served  # what is given stays as it is


def test_a_server_is_to_be_named():
    unnamed = changed(MINI, {"training": SERVER})
    assert refused(unnamed).endswith(
        ": vllm_mode=server: start a vLLM server and name its address, vllm_server_base_url"
    )
    check(changed(unnamed, {"training": NAMED}))


def test_a_training_without_an_optimizer_step_is_refused_with_the_arithmetic():
    many = changed(MINI, {"training": {"prompts_per_step": 1000}})
    assert refused(many) == (
        "run toy-llama/grpo-plus1/G2/default: not one optimizer step would be taken: rollouts are generated for 1000 "
        "prompts at a time (per_device_train_batch_size=2000 x steps_per_generation=1 x 1 process(es) / "
        "num_generations=2), and there are 960 to train on"
    )
    check(changed(many, {"datasets": {"two-step": {"splits": {"train": {"rows": 1000}}}}}))


def test_rows_of_a_folder_are_counted_and_of_the_hub_the_study_says_how_many_it_takes(tmp_path):
    few, row = changed(MINI, {"training": {"prompts_per_step": 16}}), '{"question": "1 + 1?", "answer": "#### 2"}\n'
    few["models"] = {name: {"toy": spec["toy"]} for name, spec in few["models"].items()}
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(row * 20)
    for kind, spec in {"folder": str(tmp_path), "hub": "someone/sums"}.items():
        few["datasets"]["two-step"] = {"task": "gsm8k", kind: spec, "splits": {"train": {"rows": 15}, "test": {}}}
        assert "and there are 15 to train on" in refused(few)
    few["datasets"]["two-step"] = {"task": "gsm8k", "folder": str(tmp_path)}
    (tmp_path / "train.jsonl").write_text(row * 3)
    assert "and there are 3 to train on" in refused(few)
