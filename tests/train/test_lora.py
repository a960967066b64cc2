"""LoRA in the mini world: adapters are trained, and what is left is a model like any other."""

from dataclasses import replace

import pytest
import torch
from training_jobs import changed
from transformers import AutoModelForCausalLM

from mcgrpo.train.assemble import save_weights

LORA = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]}
RUN = changed(lora=LORA, learning_rate=1e-2, beta=0.04)


def state(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()


def adapters(made):
    return {name: value.detach().clone() for name, value in made.model.named_parameters() if "lora_" in name}


@pytest.fixture(scope="module")
def finished(assembled, tmp_path_factory):
    """A trainer that has trained adapters, the adapters at its start, and the weights that it saved."""
    folder = tmp_path_factory.mktemp("finished")
    made = assembled(folder, RUN)
    start = adapters(made)
    made.train()
    save_weights(made, folder / "weights")
    return made, start, folder / "weights"


def test_only_adapters_are_trained_in_fp32(finished):
    made, start, _ = finished
    trained = {name: weight for name, weight in made.model.named_parameters() if weight.requires_grad}
    assert trained.keys() == start.keys() and len(start) == 4
    assert {weight.dtype for weight in trained.values()} == {torch.float32}
    assert any(not torch.equal(weight, start[name]) for name, weight in trained.items())


def test_the_reference_of_the_kl_term_is_the_base(finished):
    made, *_ = finished
    assert made.ref_model is None
    kl = [row["kl"] for row in made.state.log_history if "kl" in row]
    assert kl[0] == pytest.approx(0, abs=1e-9) and kl[-1] > 1e-6


def test_the_model_differs_by_the_merged_adapters_and_by_nothing_else(finished, inputs):
    made, _, weights = finished
    before, after, trained = state(inputs / "model"), state(weights), adapters(made)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert before.keys() == after.keys()
    assert {path.name for path in weights.parent.iterdir()} - {"checkpoints"} == {"weights"}, "no adapter is left"
    assert changed == {name for name in before if "q_proj" in name or "v_proj" in name}
    for name in changed:
        a, b = (trained[f"base_model.model.{name.removesuffix('weight')}lora_{part}.default.weight"] for part in "AB")
        torch.testing.assert_close(after[name], before[name] + LORA["lora_alpha"] / LORA["r"] * b @ a)


def test_adapters_are_drawn_by_the_seed(assembled, tmp_path):
    torch.manual_seed(1)
    one = adapters(assembled(tmp_path, RUN))
    torch.manual_seed(2)
    same = adapters(assembled(tmp_path, RUN))
    other = adapters(assembled(tmp_path, replace(RUN, seed=RUN.seed + 1)))
    assert all(torch.equal(value, same[name]) for name, value in one.items())
    drawn = [name for name in one if "lora_A" in name]
    assert drawn and not any(torch.equal(one[name], other[name]) for name in drawn)
