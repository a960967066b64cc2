"""Trainers whose rollouts a real vLLM draws in their own process."""

import os

import torch
from tiny_training import Ours, trainer_of

VLLM = {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": 64, "beta": 0.0}


class Watched(Ours):
    """Keeps every call of vLLM (its prompts' token ids, the completions drawn), and the rows kept of it."""

    def __init__(self, *args, **kwargs):
        self.calls, self.kept = [], []
        super().__init__(*args, **kwargs)
        generate = self.vllm_generation.llm.generate

        def watched(prompts, *arguments, **options):
            outputs = generate(prompts, *arguments, **options)
            self.calls.append([(out.prompt_token_ids, [one.token_ids for one in out.outputs]) for out in outputs])
            return outputs

        self.vllm_generation.llm.generate = watched

    def _generate_and_score_completions(self, inputs):
        self.kept.append(super()._generate_and_score_completions(inputs))
        return self.kept[-1]

    @property
    def drawn(self):
        """Completions of every call, as lists of token ids."""
        return [[list(ids) for _, drawn in call for ids in drawn] for call in self.calls]


def built(tmp_path, kind=Watched, **settings):
    if "TORCHELASTIC_RUN_ID" not in os.environ:  # left by TRL: a later trainer would take itself for one of several
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
            os.environ.pop(name, None)
    return trainer_of(kind, tmp_path, **{**VLLM, **settings})


def trained(tmp_path, kind=Watched, **settings):
    trainer = built(tmp_path, kind, **settings)
    trainer.train()
    return trainer


def greedy(trainer, prompts):
    """Completions that vLLM takes for the likeliest, token ids without the end."""
    from vllm import SamplingParams

    settings = SamplingParams(temperature=0, max_tokens=8)
    requests = [{"prompt_token_ids": ids} for ids in prompts]
    outputs = trainer.vllm_generation.llm.generate(requests, settings, use_tqdm=False)
    return [without_end(trainer, output.outputs[0].token_ids) for output in outputs]


def greedy_of_transformers(trainer, prompts):
    """The same of the model that is trained, prompt by prompt so that nothing is padded."""
    model, found = trainer.accelerator.unwrap_model(trainer.model), []
    mode = model.training
    model.eval()
    for ids in prompts:
        with torch.inference_mode():
            output = model.generate(
                input_ids=torch.tensor([ids]), max_new_tokens=8, do_sample=False, temperature=None, top_k=None
            )
        found.append(without_end(trainer, output[0, len(ids) :].tolist()))
    model.train(mode)
    return found


def without_end(trainer, ids):
    return [token for token in ids if token not in (trainer._tokenizer.eos_token_id, trainer._tokenizer.pad_token_id)]
