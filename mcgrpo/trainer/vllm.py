"""vLLM driven by MCGRPOTrainer: as TRL drives it, but with the run's seed, and with room for the extra rollouts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain
from typing import Any
from unittest.mock import patch

import torch
from trl.generation.vllm_generation import VLLMGeneration
from trl.trainer import grpo_trainer

from mcgrpo.trainer.seeds import random_state, seed_of

CONCURRENT_REQUESTS = 64  # TRL's own number for requests of single prompts


class VLLMRollouts(VLLMGeneration):
    """TRL's `VLLMGeneration`, whose rollouts depend on the run's seed.

    TRL 1.16 seeds a colocated engine with the number of its process, whatever `args.seed` is (TRL issue 7040), and the
    engine draws from the process's own generators, as dropout does. Here each generation has a seed of its own, made
    from `args.seed`, the mode (training or evaluation), the global step, the generation's place within that step, and
    the process (processes that share one engine by tensor parallelism share the seed). Building the engine and drawing
    from it leave the process's random state as it was. So the same seed draws the same rollouts, also in a resumed
    training, and dropout is that of rollouts drawn with transformers.

    - colocate: the default generators of Python, NumPy and torch are seeded while vLLM draws. vLLM's first model runner
      draws tokens from torch's; its second one takes a seed for each sequence from NumPy's.
    - server: each prompt is a request with a seed of its own; within one request all prompts would get the same noise.
      A server batches requests as they come, which may change a rounding, and then a token; its own option
      `VLLM_BATCH_INVARIANT=1` keeps that from happening.

    A seed in `generation_kwargs` is the caller's, and then stays alone in force.

    Args:
        trainer: the MCGRPOTrainer whose rollouts these are.
        max_num_seqs: TRL's, as many sequences as are trained on; the extra rollouts are added, which would otherwise
            wait until others have ended.
    """

    def __init__(self, trainer: Any, *args: Any, max_num_seqs: int, **kwargs: Any):
        self.trainer = trainer
        self._moment, self._place = "", 0
        size = trainer.num_generations
        groups = -(-max_num_seqs // size)
        super().__init__(*args, max_num_seqs=groups * (size + trainer.args.num_extra_rollouts), **kwargs)

    def _init_vllm(self) -> None:
        threads = torch.get_num_threads()
        with random_state(self.accelerator.device):
            super()._init_vllm()
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        if self.mode == "server" and self.accelerator.is_main_process:
            self.vllm_client.generate = partial(prompt_by_prompt, self.vllm_client.generate)

    def generate(self, prompts: list[list[int]], images: list | None, num_generations: int, profiler: Any = None):
        """As TRL's, with the seed of this generation."""
        key = self._key()
        if self.mode == "server":
            own = self.generation_kwargs
            self.generation_kwargs = own if "seed" in own else {**own, "key": key}
            try:
                return super().generate(prompts, images, num_generations, profiler)
            finally:
                self.generation_kwargs = own
        with random_state(self.accelerator.device, seed_of(key)):
            return super().generate(prompts, images, num_generations, profiler)

    def _key(self) -> str:
        """What this generation's seed is made from."""
        trainer = self.trainer
        mode = "train" if trainer.model.training else "eval"
        moment = f"{trainer.args.seed}/{mode}/{trainer.state.global_step}"
        self._place = self._place + 1 if moment == self._moment else 0
        self._moment = moment
        return f"{moment}/{self._place}/{self.accelerator.process_index // self.tensor_parallel_size}"


def used_by(trainer: Any) -> AbstractContextManager:
    """Within it TRL's trainer builds a `VLLMRollouts` where it would build its own class, which no argument chooses."""
    return patch.object(grpo_trainer, "VLLMGeneration", partial(VLLMRollouts, trainer))


def prompt_by_prompt(
    generate: Callable[..., dict], prompts: list[list[int]], generation_kwargs: dict[str, Any], **params: Any
) -> dict[str, list | None]:
    """TRL's `VLLMClient.generate`, one request a prompt, each with a seed made from the batch's key and its place.

    Args:
        generate: that method.
        prompts: token ids of each.
        generation_kwargs: of each request; `key`, if there is one, is not sent, but gives the seeds.
        params: the other arguments of that method, the same for each prompt.

    Returns:
        What that method returns for all prompts in one request: lists over prompts, or over completions, in order.
    """
    if "key" not in generation_kwargs:
        return generate(prompts=prompts, generation_kwargs=generation_kwargs, **params)
    others = {name: value for name, value in generation_kwargs.items() if name != "key"}

    def draw(place: int) -> dict:
        seed = seed_of(f"{generation_kwargs['key']}/{place}", bits=62)  # vLLM adds the number of the completion
        return generate(prompts=[prompts[place]], generation_kwargs={**others, "seed": seed}, **params)

    with ThreadPoolExecutor(CONCURRENT_REQUESTS) as pool:
        answers = list(pool.map(draw, range(len(prompts))))
    return {
        name: None if answers[0][name] is None else list(chain.from_iterable(answer[name] for answer in answers))
        for name in answers[0]
    }
