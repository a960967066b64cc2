"""A study whose batches do not fit its G or its data is refused, with the arithmetic."""

from studies import changed, load, refused

from mcgrpo.study.check import check
from mcgrpo.study.read import schema

SCHEMA = schema()
MINI = load("mini")
FIXED = changed(MINI, {"training": {"per_device_train_batch_size": 24}})
del FIXED["training"]["prompts_per_step"]
FIXED["variants"]["rival-prompts-x4"] = {}  # it says its prompts


def test_g_that_does_not_divide_the_batch_is_refused_with_the_arithmetic():
    check(FIXED, SCHEMA)
    message = refused(changed(FIXED, {"experiments": {"main": {"num_generations": [2, 16]}}}))
    assert message.startswith("run toy-qwen3/grpo/G16/default: num_generations=16 does not divide the 24 rows")
    assert "per_device_train_batch_size=24 x steps_per_generation=1" in message
    config = changed(FIXED, {"training": {"gradient_accumulation_steps": 2}})
    check(changed(config, {"experiments": {"main": {"num_generations": [16]}}}), SCHEMA)


NO_STEP = (
    "run toy-llama/{}: not one optimizer step would be taken: rollouts are generated for 1000 prompts at a time "
    "(per_device_train_batch_size={} x steps_per_generation=1 x 1 process(es) / num_generations={}), "
    "and there are {} to train on"
)


def test_a_training_without_an_optimizer_step_is_refused_with_the_arithmetic():
    many = changed(MINI, {"training": {"prompts_per_step": 1000}})
    assert refused(many) == NO_STEP.format("grpo-plus1/G2/default", 2000, 2, 960)
    check(changed(many, {"datasets": {"two-step": {"splits": {"train": {"rows": 1000}}}}}), SCHEMA)
    assert "and there are 999 to" in refused(
        changed(many, {"datasets": {"two-step": {"splits": {"train": {"rows": 999}}}}})
    )


def test_rows_that_lie_here_are_counted(tmp_path):
    """A local folder's rows; of the hub's the study says how many it takes at most."""
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
