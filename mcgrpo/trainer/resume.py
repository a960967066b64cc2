"""Checkpoints from which a GRPO training goes on to the same end: what TRL leaves out of them.

transformers saves weights, optimizer, schedule, random states and the step. TRL 1.16 adds nothing, so that a training
resumed from its checkpoint draws its rollouts anew in the middle of a generation batch (`num_iterations` or
`steps_per_generation` above 1), counts micro-batches from 0, and goes through a later epoch in the order of the first,
or of a streaming data set (`IterableDataset`) from its first row.
"""

import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from datasets import IterableDataset
from transformers import TrainerState
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOTrainer


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

    def _init_training_state(
        self, max_steps: int, steps_per_epoch: int, epochs: int, checkpoint: str | None, trial: Any
    ) -> tuple[int, int]:
        """Epochs that are over, and micro-batches of the current one that have been trained on."""
        place = super()._init_training_state(max_steps, steps_per_epoch, epochs, checkpoint, trial)
        if checkpoint is None or self.args.ignore_data_skip or not isinstance(self.train_dataset, IterableDataset):
            return place
        saved = TrainerState.load_from_json(str(Path(checkpoint, TRAINER_STATE_NAME)))
        # The length of a stream is not known: transformers counts its epochs as if each took all of max_steps
        batches = saved.max_steps * self.args.gradient_accumulation_steps
        return divmod(round(saved.epoch * batches), batches)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with self._loading_to_cpu():
            super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        if not isinstance(self.train_dataset, IterableDataset):  # a stream is shuffled by the number of its epoch
            for _ in range(int(self.state.epoch)):  # the sampler draws each epoch's order where the last one left off
                next(iter(self._train_sampler))
        file = self._rollouts_in(Path(checkpoint))
        if not file.is_file():
            warnings.warn(f"{checkpoint} holds no rollouts: it is not resumed to the bit", stacklevel=2)
            return
        with self._loading_to_cpu():
            state = torch.load(file, map_location=self.args.device, weights_only=True)
        self._step, self._buffered_inputs = state["step"], state["inputs"]
        self._metrics["train"].update(state["metrics"])

    def _loading_to_cpu(self) -> AbstractContextManager:
        """Within it the device of a CPU process is plain `cpu`.

        accelerate numbers the CPUs of several processes (cpu:0, cpu:1), and torch.load knows no such device.
        """
        if self.args.device.type != "cpu":
            return nullcontext()
        return patch.dict(vars(self.args), _setup_devices=torch.device("cpu"))  # what `args.device` is read from

    def _rollouts_in(self, checkpoint: Path) -> Path:
        return checkpoint / f"rollouts_{self.accelerator.process_index}.pt"
