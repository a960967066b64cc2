"""Checkpoints that resume a GRPO training exactly: what TRL leaves out of them.

transformers saves weights, optimizer, scheduler, random states and the step. TRL 1.16 adds no rollouts: a resumed
training draws new ones in the middle of a generation batch (`num_iterations` or `steps_per_generation` above 1), counts
micro-batches from 0, and repeats the order of the first epoch in a later one. With a streaming data set
(`IterableDataset`) it starts at the first row. Of several adapters transformers loads only those in sub-folders, so not
`default`, which PEFT saves beside them.
"""

import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from accelerate.utils import gather_object, is_peft_model
from datasets import IterableDataset
from transformers import TrainerState
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOTrainer

REFERENCE = "ref"
"""TRL's copy of an adapter that the model came with: the reference of the KL penalty."""


def load_adapters(model: Any, checkpoint: Path) -> None:
    """Load each adapter of a `PeftModel` from where PEFT has saved it: `default` in the checkpoint, others below it.

    The reference stays as TRL has made it if the checkpoint is of a training without a KL penalty.

    Raises:
        ValueError: if the checkpoint lacks an adapter, or some of its weights.
    """
    for name in model.peft_config:
        folder = checkpoint if name == "default" else checkpoint / name
        if (folder / "adapter_config.json").is_file():
            found = model.load_adapter(str(folder), name, is_trainable=True, autocast_adapter_dtype=False)
            if found.missing_keys:
                raise ValueError(f"{folder} lacks weights of the adapter {name!r}: {found.missing_keys[0]}, ...")
        elif name != REFERENCE:
            raise ValueError(
                f"{checkpoint} does not hold the model's adapter {name!r}: resume with the adapters it has"
            )


class ResumableTrainer(GRPOTrainer):
    """`GRPOTrainer` whose checkpoints also hold each process's buffered rollouts, micro-batch count and metrics.

    The only changes w.r.t. `GRPOTrainer`: `_save_checkpoint` writes them, `_load_optimizer_and_scheduler` reads them
    and advances the sampler that `_get_train_sampler` made, `_init_training_state` finds the row of a streaming data
    set, and `_load_from_checkpoint` and `_load_best_model` load every adapter. On a CPU a resumed training ends with
    the same weights and metrics as an uninterrupted one, to the bit.
    """

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        self._train_sampler = super()._get_train_sampler(dataset)
        return self._train_sampler

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if not self.args.save_only_model:
            folder = Path(self._get_output_dir(trial), f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}")
            state = {"step": self._step, "inputs": self._buffered_inputs, "metrics": dict(self._metrics["train"])}
            torch.save(state | {"arithmetic": self._arithmetic()}, self._rollouts_in(folder))
        self.accelerator.wait_for_everyone()

    def _init_training_state(
        self, max_steps: int, steps_per_epoch: int, epochs: int, checkpoint: str | None, trial: Any
    ) -> tuple[int, int]:
        """Returns the finished epochs, and the micro-batches of the current epoch that were trained on."""
        finished = super()._init_training_state(max_steps, steps_per_epoch, epochs, checkpoint, trial)
        if checkpoint is None or self.args.ignore_data_skip or not isinstance(self.train_dataset, IterableDataset):
            return finished
        saved = TrainerState.load_from_json(str(Path(checkpoint, TRAINER_STATE_NAME)))
        # transformers does not know the length of a stream and counts its epochs as if each took max_steps
        batches = saved.max_steps * self.args.gradient_accumulation_steps
        return divmod(round(saved.epoch * batches), batches)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        model = self.model if model is None else model
        if is_peft_model(model) and not self.is_fsdp_enabled:
            load_adapters(model, Path(resume_from_checkpoint))
        else:
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_best_model(self) -> None:
        best = Path(self.state.best_model_checkpoint)
        ours = is_peft_model(self.model) and not self.is_fsdp_enabled and not self.is_deepspeed_enabled
        if ours and (best / "adapter_config.json").is_file():  # on a node without a shared disk it is not there
            load_adapters(self.model, best)
        else:
            super()._load_best_model()

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with self._loading_to_cpu():
            super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        if not isinstance(self.train_dataset, IterableDataset):  # a stream is shuffled by its epoch's number
            for _ in range(int(self.state.epoch)):  # the sampler's generator continues from epoch to epoch
                next(iter(self._train_sampler))
        state = self._saved_in(Path(checkpoint))
        found = gather_object([state and state.get("arithmetic") == self._arithmetic()])
        if all(found):
            self._step, self._buffered_inputs = state["step"], state["inputs"]
        else:  # in all processes: where nothing is buffered, and at micro-batch 0, TRL draws anew
            odd = "holds no rollouts" if not any(each is not None for each in found) else "is of other batches"
            warnings.warn(f"{checkpoint} {odd}: training does not resume exactly", stacklevel=2)
        self._metrics["train"].update(state["metrics"] if state else {})

    def _saved_in(self, checkpoint: Path) -> dict[str, Any] | None:
        """What this process has written into a checkpoint."""
        file = self._rollouts_in(checkpoint)
        if not file.is_file():
            return None
        with self._loading_to_cpu():
            return torch.load(file, map_location=self.args.device, weights_only=True)

    def _arithmetic(self) -> list[int | bool | str]:
        """The settings that buffered rollouts are cut, computed and scaled for."""
        args, processes = self.args, self.accelerator.num_processes
        batches = [args.per_device_train_batch_size, args.steps_per_generation, args.gradient_accumulation_steps]
        loss = [args.loss_type, self.beta != 0, bool(self.use_vllm), args.vllm_importance_sampling_correction]
        return [*batches, self.num_iterations, self.num_generations, processes, *loss]

    def _loading_to_cpu(self) -> AbstractContextManager:
        """Within it `args.device` of a CPU process is plain `cpu`.

        accelerate numbers the CPUs of several processes (cpu:0, cpu:1), which torch.load refuses as a `map_location`.
        """
        if self.args.device.type != "cpu":
            return nullcontext()
        return patch.dict(vars(self.args), _setup_devices=torch.device("cpu"))  # the cached value of `args.device`

    def _rollouts_in(self, checkpoint: Path) -> Path:
        return checkpoint / f"rollouts_{self.accelerator.process_index}.pt"
