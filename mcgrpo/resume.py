"""Checkpoints from which a GRPO training goes on to the same end: what TRL leaves out of them.

transformers saves weights, optimizer, schedule, random states and the step. TRL 1.16 adds nothing, so that a training
resumed from its checkpoint draws its rollouts anew in the middle of a generation batch (`num_iterations` or
`steps_per_generation` above 1), counts micro-batches from 0, and goes through a later epoch in the order of the first.
"""

import warnings
from pathlib import Path
from typing import Any

import torch
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOTrainer

# accelerate numbers the CPUs of several processes (cpu:0, cpu:1), which torch.load does not know how to load to.
torch.serialization.register_package(
    0, lambda storage: None, lambda storage, location: storage if location.startswith("cpu:") else None
)


class ResumableTrainer(GRPOTrainer):
    """`GRPOTrainer` whose checkpoints also hold, for each process, its buffered rollouts and its place among them.

    On a CPU a resumed training ends with the weights and the metrics of one that was never interrupted, to the bit.
    """

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        self._train_sampler = super()._get_train_sampler(dataset)
        return self._train_sampler

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if not self.args.save_only_model:
            folder = Path(self._get_output_dir(trial), f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}")
            state = {"step": self._step, "inputs": self._buffered_inputs, "metrics": dict(self._metrics["train"])}
            torch.save(state, self._rollouts_in(folder))
        self.accelerator.wait_for_everyone()

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        for _ in range(int(self.state.epoch)):  # the sampler draws each epoch's order where the last one left off
            next(iter(self._train_sampler))
        file = self._rollouts_in(Path(checkpoint))
        if not file.is_file():
            warnings.warn(f"{checkpoint} holds no rollouts: it is not resumed to the bit", stacklevel=2)
            return
        state = torch.load(file, map_location=self.accelerator.device, weights_only=True)
        self._step, self._buffered_inputs = state["step"], state["inputs"]
        self._metrics["train"].update(state["metrics"])

    def _rollouts_in(self, checkpoint: Path) -> Path:
        return checkpoint / f"rollouts_{self.accelerator.process_index}.pt"
