"""Gradients of real trainings against the paper's equations (`equations`), to float32's rounding."""

from copy import deepcopy
from functools import cache

import pytest
import torch
from equations import Policies, Row, advantages, kept, loss
from tiny_training import Ours, history, model_folder, trainer_of
from transformers import AutoModelForCausalLM, TrainerCallback

from mcgrpo.study.methods import METHODS
from mcgrpo.train.arguments import TRL_CHANGES

LONGEST = 16
EOS = 1
ROUNDING = 1e-5
"""Of a gradient, as a share of its norm."""


class Record(TrainerCallback):
    """Of every update of a training: what was drawn for it and by which weights, its weights, and its gradient."""

    def __init__(self, levels):
        self.levels, self.model, self.drawn, self.updates = levels, None, None, []

    def reward(self, prompts, completion_ids, **kwargs):
        """As many levels as asked for, 0, 0.5, 1, ...: often tied."""
        rewards = [sum(ids) % self.levels / 2 for ids in completion_ids]
        self.drawn = weights_of(self.model), list(zip(prompts, completion_ids, rewards, strict=True))
        return rewards

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        gradient = torch.cat([each.grad.flatten() for each in model.parameters()])
        self.updates.append((*self.drawn, weights_of(model), gradient.double()))


def weights_of(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


@cache
def untrained():
    return AutoModelForCausalLM.from_pretrained(model_folder(), dtype=torch.float64)


def model_of(weights=None):
    """In float64; the untrained model without weights. Not the trainer's own object, whose forward is TRL's."""
    model = deepcopy(untrained())
    if weights:
        model.load_state_dict(weights)
    return model


def trained(method, tmp_path, levels, **settings):
    """A training of that method with what every run of a study sets, and completions that end at different lengths.

    Its gradients are not clipped, which would hide their size.
    """
    chosen, record = METHODS[method], Record(levels)
    fixed = {"loss_type": chosen.loss_type, "estimator": chosen.estimator, "max_completion_length": LONGEST}
    fixed |= {"learning_rate": 1e-2, "max_grad_norm": 0.0, "epsilon": 0.2}
    fixed["generation_kwargs"] = {"sequence_bias": [[[EOS], 2.5]]}
    trainer = trainer_of(Ours, tmp_path, record.reward, **{**TRL_CHANGES, **fixed, **settings})
    assert trainer.processing_class.eos_token_id == EOS
    trainer.add_callback(record)
    record.model = trainer.model
    trainer.train()
    return trainer, record.updates


def rows_of(method, drawn, tokenizer):
    """The rows that are trained on, of all prompts."""
    groups = {}
    for prompt, completion, reward in drawn:
        groups.setdefault(prompt, []).append((completion, reward))
    found = []
    for prompt, group in groups.items():
        values = advantages(method, [reward for _, reward in group])
        ids = tokenizer(prompt)["input_ids"]
        found += [Row(ids, group[place][0], values[place]) for place in kept(method, values)]
    return found


def differences(method, tmp_path, levels=5, beta=0.04, **settings):
    """How far the gradient of each update is from that of the equations, as a share of its norm."""
    trainer, updates = trained(method, tmp_path, levels, beta=beta, **settings)
    found, lengths = [], set()
    for old, drawn, now, gradient in updates:
        rows = rows_of(method, drawn, trainer.processing_class)
        policies = Policies(model_of(now), model_of(old), model_of())
        loss(method, rows, policies, beta, LONGEST).backward()
        expected = torch.cat([each.grad.flatten() for each in policies.now.parameters()])
        found.append(((gradient - expected).norm() / expected.norm()).item())
        lengths |= {len(row.completion) for row in rows}
    assert len(lengths) > 1
    assert trainer.num_iterations == 1 or max(history(trainer, "clip_ratio/region_mean")) > 0.1
    return found


@pytest.mark.parametrize(
    ("beta", "compact_updates"), [(0.0, True), (0.04, True), (0.04, False)], ids=["no-kl", "kl", "kl-whole"]
)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow
def test_off_policy_gradients_are_those_of_the_equations(method, beta, compact_updates, tmp_path):
    """The second update is a step away from its rollouts; the second and the third are away from the reference."""
    options = {"beta": beta, "compact_updates": compact_updates, "num_iterations": 2, "max_steps": 3}
    found = differences(method, tmp_path, **options)
    assert len(found) == 3 and max(found) < ROUNDING


@pytest.mark.parametrize("method", METHODS)
def test_on_policy_gradients_are_those_of_the_equations(method, tmp_path):
    found = differences(method, tmp_path, max_steps=2)
    assert len(found) == 2 and max(found) < ROUNDING


@pytest.mark.parametrize("beta", [0.0, 0.04])
def test_gradients_are_those_of_the_equations_where_the_mad_is_0(beta, tmp_path):
    """Advantages of 500, beside which the KL term is next to nothing."""
    found = differences("mc-grpo", tmp_path, levels=2, beta=beta, num_iterations=2, max_steps=2)
    assert len(found) == 2 and max(found) < ROUNDING
