"""Trainings whose rollouts are scripted, so that one process and several see the same; started by test_processes.py.

`python -m scripted CASES` with a JSON list of cases, each: `folder` (gets a file a rank, and the trained weights),
`model`, `data`, `loss_type`, `estimator`, `num_generations`, `gpus`, `training`.
"""

import json
import os
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import torch
from accelerate.state import AcceleratorState
from device import ON_GPU
from runs import RUN
from transformers import TrainerCallback

from mcgrpo.files import read_jsonl
from mcgrpo.records import Example
from mcgrpo.train.arguments import arguments_of
from mcgrpo.train.assemble import save_weights, trainer_of
from mcgrpo.train.sharding import check_sharded
from mcgrpo.trainer.trainer import MCGRPOTrainer


def reply(question, answer, rollout, step):
    """A right or a wrong answer after a working of 0 to 6 numbers: the same for the same arguments."""
    draw = random.Random(f"{question}/{rollout}/{step}")
    working = ";".join(str(draw.randrange(100)) for _ in range(draw.randrange(7)))
    given = answer if draw.random() < 0.5 else str(draw.randrange(100))
    return f"{working}<answer>{given}</answer>"


class Gradients(TrainerCallback):
    """Keeps the gradient of every optimizer step, the mean over processes.

    Of sharded weights it keeps, after each micro-batch but the last, the share of weights that have a gradient.
    """

    def __init__(self):
        self.steps, self.between = [], []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        if not args.fsdp:  # else each process has a part of it
            self.steps.append(torch.cat([each.grad.flatten() for each in model.parameters() if each.requires_grad]))

    def on_substep_end(self, args, state, control, model=None, **kwargs):
        if args.fsdp:
            weights = [each for each in model.parameters() if each.requires_grad]
            self.between.append(sum(each.grad is not None for each in weights) / len(weights))


class Scripted(MCGRPOTrainer):
    """Completions come from `reply`, with the place of a row among those of its prompt as the rollout."""

    answers: dict[str, str]

    def __init__(self, *args, **kwargs):
        self.updates = []
        super().__init__(*args, **kwargs)

    def _generate_single_turn(self, prompt_ids, *args, **kwargs):
        self.rollouts = Counter()
        return [self._reply(ids) for ids in prompt_ids], None

    def _reply(self, prompt_ids):
        question = self.processing_class.decode(prompt_ids)
        self.rollouts[question] += 1
        text = reply(question, self.answers[question], self.rollouts[question], self.state.global_step)
        return [*self.processing_class(text)["input_ids"], self.processing_class.eos_token_id]

    def _compute_loss(self, model, inputs):
        loss = super()._compute_loss(model, inputs)
        prompts, completions = (
            [self.processing_class.decode(ids, skip_special_tokens=True) for ids in inputs[f"{part}_ids"]]
            for part in ("prompt", "completion")
        )
        rows = list(zip(prompts, completions, inputs["advantages"].tolist(), strict=True))
        old = inputs.get("old_per_token_logps")
        self.updates.append({"step": self.state.global_step, "rows": rows, "loss": loss.item(), "old": old})
        return loss


def run_of(case):
    given = {name: case[name] for name in ("num_generations", "loss_type", "estimator", "training")}
    return replace(RUN, seed=0, **given)


def train(case):
    """Train a case; returns the trainer, or what it was refused with."""
    folder, data, run = Path(case["folder"]), Path(case["data"]), run_of(case)
    try:
        args = arguments_of(run, folder / "checkpoints", case["gpus"])
    except ValueError as error:
        return str(error)
    examples = read_jsonl(data, Example)
    Scripted.answers = {example.question: example.answer for example in examples}
    with patch("mcgrpo.trainer.trainer.MCGRPOTrainer", Scripted):
        trainer = trainer_of(run, args, Path(case["model"]), [e for e in examples if e.split == "train"], None, [])
    check_sharded(trainer)
    trainer.gradients = Gradients()
    trainer.add_callback(trainer.gradients)
    trainer.train()
    return trainer


def held(trainer):
    """The share of the trained weights' elements that this process holds."""
    parameters = [each for each in trainer.model.parameters() if each.requires_grad]
    here = [each.to_local() if hasattr(each, "to_local") else each for each in parameters]
    return sum(map(torch.numel, here)) / sum(map(torch.numel, parameters))


def record(case):
    """Train a case and leave in its folder what this process saw, and what came of it."""
    folder = Path(case["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    trained = train(case)
    if isinstance(trained, str):
        seen = {"refused": trained}
    else:
        save_weights(trained, folder / "weights")
        seen = {"updates": trained.updates, "held": held(trained)}
        seen |= {"gradients": trained.gradients.steps, "between": trained.gradients.between}
    torch.save(seen, folder / f"rank{torch.distributed.get_rank() if torch.distributed.is_initialized() else 0}.pt")


def main():
    torch.set_num_threads(1)
    if ON_GPU:  # which all processes share: each is the first of its machine, so that its device is number 0
        os.environ |= {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    cases = json.loads(sys.argv[1])
    for case in cases:
        AcceleratorState._reset_state(reset_partial_state=True)  # a process of a study trains once
        record(case)


if __name__ == "__main__":
    main()
