"""TRL's vLLM generation with the run's seed, and with room for the extra rollouts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain
from typing import Any
from unittest.mock import patch

import torch
from torch.distributed.fsdp import FSDPModule
from trl.generation.vllm_generation import VLLMGeneration
from trl.trainer import grpo_trainer

from mcgrpo.trainer.seeds import random_state, seed_of

MOST_AT_ONCE = 1024
"""Sequences that are asked of a server at once: as many as vLLM draws together by default, or more."""
MOST_SEQUENCES = 4096
"""Of a colocated engine: vLLM allows no more than `max_num_batched_tokens`, which TRL sets to this."""


class VLLMRollouts(VLLMGeneration):
    """TRL's `VLLMGeneration` with rollouts that depend on the run's seed.

    TRL 1.16 seeds a colocated engine with the rank of its process, whatever `args.seed` is (TRL issue 7040), and the
    engine draws from the process's global generators, as dropout does. Here each generation has its own seed, made from
    `args.seed`, the mode (training or evaluation), the global step, the generation's position within that step, and the
    process (processes that share an engine by tensor parallelism share the seed). The process's random state is
    restored after the engine is built and after it draws. The same seed therefore draws the same rollouts, also in a
    resumed training, and dropout is the same as with rollouts drawn by transformers.

    - colocate: the default generators of Python, NumPy and torch are seeded while vLLM draws. vLLM's first model runner
      draws tokens from torch's; its second one takes a seed for each sequence from NumPy's.
    - server: each prompt is a request with its own seed; within one request all prompts would get the same noise. A
      server batches requests as they arrive, which may change rounding, and then a token;
      `VLLM_BATCH_INVARIANT=1` on the server prevents this.

    A seed in `generation_kwargs` takes precedence over all of this.

    Args:
        trainer: the MCGRPOTrainer that draws the rollouts.
        max_num_seqs: TRL's number, the sequences that are trained on. Those of the extra rollouts are added: otherwise
            they would wait until others have ended (up to `MOST_SEQUENCES`).
    """

    def __init__(self, trainer: Any, *args: Any, max_num_seqs: int, **kwargs: Any):
        self.trainer = trainer
        self._moment, self._position = "", 0
        size = trainer.num_generations
        groups = -(-max_num_seqs // size)
        drawn = groups * (size + trainer.args.num_extra_rollouts)
        super().__init__(*args, max_num_seqs=max(max_num_seqs, min(drawn, MOST_SEQUENCES)), **kwargs)

    def _init_vllm(self) -> None:
        threads = torch.get_num_threads()
        with random_state(self.accelerator.device):
            super()._init_vllm()
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)

    def sync_weights(self) -> None:
        """TRL's method, with weights that are divided among processes whenever it is called.

        FSDP2 keeps the embedding, the last norm and the output layer whole from a forward pass to its backward pass.
        After one without, as in an evaluation, TRL 1.16 ends with "'Tensor' object has no attribute 'full_tensor'".
        """
        for module in self.model.modules():
            if isinstance(module, FSDPModule):
                module.reshard()
        super().sync_weights()

    def generate(self, prompts: list[list[int]], images: list | None, num_generations: int, profiler: Any = None):
        """TRL's method, with the seed of this generation."""
        with self._seeded(self._key()):
            return super().generate(prompts, images, num_generations, profiler)

    def _seeded(self, key: str) -> AbstractContextManager:
        if self.mode != "server":
            return random_state(self.accelerator.device, seed_of(key))
        if "seed" in self.generation_kwargs or not self.accelerator.is_main_process:
            return nullcontext()
        return patch.object(self.vllm_client, "generate", partial(prompt_by_prompt, self.vllm_client.generate, key))

    def _key(self) -> str:
        """The text that this generation's seed is made from."""
        trainer = self.trainer
        mode = "train" if trainer.model.training else "eval"
        moment = f"{trainer.args.seed}/{mode}/{trainer.state.global_step}"
        self._position = self._position + 1 if moment == self._moment else 0
        self._moment = moment
        return f"{moment}/{self._position}/{self.accelerator.process_index // self.tensor_parallel_size}"


def used_by(trainer: Any) -> AbstractContextManager:
    """Within it, TRL's trainer builds a `VLLMRollouts` instead of a `VLLMGeneration`; it has no argument for that."""
    return patch.object(grpo_trainer, "VLLMGeneration", partial(VLLMRollouts, trainer))


def prompt_by_prompt(
    generate: Callable[..., dict], key: str, prompts: list[list[int]], generation_kwargs: dict[str, Any], **params: Any
) -> dict[str, list | None]:
    """TRL's `VLLMClient.generate`, one request per prompt, each with its own seed.

    Args:
        generate: that method.
        key: seeds are made from it and the prompt's position.
        prompts: token ids of each prompt.
        generation_kwargs: those of each request, beside its seed.
        params: the other arguments of that method.

    Returns:
        What that method returns for all prompts in one request: lists over prompts, or over completions, in order.
    """

    def draw(position: int) -> dict:
        seed = seed_of(f"{key}/{position}", bits=62)  # vLLM adds the index of the completion
        return generate(prompts=[prompts[position]], generation_kwargs={**generation_kwargs, "seed": seed}, **params)

    with ThreadPoolExecutor(max(1, MOST_AT_ONCE // params["n"])) as pool:
        answers = list(pool.map(draw, range(len(prompts))))
    return {
        name: None if answers[0][name] is None else list(chain.from_iterable(answer[name] for answer in answers))
        for name in answers[0]
    }
