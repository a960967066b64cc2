"""Engines that generate completions: transformers, or vLLM if it is installed and there is a GPU.

An engine has a `tokenizer` and `complete(batches, settings)`. A batch is the token ids of some prompts, how they are
decoded, and a seed; for each prompt of a batch it returns (text, finish reason), in order. The same batch and settings
(`temperature`, `top_p`, `max_new_tokens`, `stop`) give the same completions, whatever else is drawn; with vLLM on a GPU
but for rounding, which depends on what is computed at once and what its prefix cache holds.
"""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from mcgrpo.data.draw import Drawn, Tokens, bare_config, draw, ends_of
from mcgrpo.launch import gpus
from mcgrpo.records import Decoding

Batch = tuple[Tokens, Decoding, int]
"""Prompts, how they are decoded, and the seed."""


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a model folder; without a padding token it pads with the end-of-sequence token, as TRL does."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def on_gpu() -> bool:
    """Whether an engine computes on a GPU.

    NVML is asked, not CUDA: after `torch.cuda.is_available()` a forked process can no longer use a GPU, and vLLM forks.
    """
    return gpus.PRETENDED not in os.environ and bool(gpus.gpus())


def dtype(settings: dict[str, Any]) -> str:
    """The dtype of computation, whatever the dtype of the saved weights: by default bf16 on a GPU, else fp32."""
    return settings.get("dtype", "bfloat16" if on_gpu() else "float32")


def backend_of(settings: dict[str, Any]) -> str:
    """The engine that `settings["backend"]` names; by default vLLM if it is installed and there is a GPU."""
    if (backend := settings.get("backend", "auto")) != "auto":
        return backend
    return "vllm" if find_spec("vllm") and on_gpu() else "transformers"


def prepare(settings: dict[str, Any]) -> None:
    """Set how vLLM starts its processes, before it or transformers is imported; what the user has set stays.

    With one GPU the engine is in this process, with several each has a worker that is spawned: a forked one cannot use
    CUDA if anything has touched it here (vLLM issue 15681). torch, too, then asks NVML. All are documented variables of
    vLLM and torch.
    """
    if backend_of(settings) != "vllm":
        return
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    if settings.get("vllm_tensor_parallel_size", 1) == 1:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")


def generation_config_of(folder: Path) -> Any:
    """The generation config of a model loaded from this folder."""
    from transformers import AutoConfig, GenerationConfig

    try:
        return GenerationConfig.from_pretrained(folder)
    except OSError:
        return GenerationConfig.from_model_config(AutoConfig.from_pretrained(folder))


def check_weights(folder: Path) -> None:
    """Refuse a model whose weights are not all finite: its greedy completions would be empty, without an error.

    Raises:
        ValueError: names the file and the weight.
    """
    import torch
    from safetensors import safe_open

    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118
                if not torch.isfinite(weights.get_tensor(name).float()).all():  # fp8 is a storage format only
                    raise ValueError(f"{file}: the weight {name} holds NaN or infinite values")


class TransformersEngine:
    """`model.generate`, by `mcgrpo.data.draw`. The tokenizer's end token ends completions too, as in TRL."""

    def __init__(self, model: Any, tokenizer: Any):
        self.model, self.tokenizer = model, tokenizer
        self.ends = ends_of(model.generation_config, tokenizer)
        model.generation_config = bare_config(model, tokenizer)

    def complete(self, batches: Sequence[Batch], settings: dict[str, Any]) -> list[Drawn]:
        """See the module."""
        return [draw(self.model, self.tokenizer, *batch, settings) for batch in batches]


class VLLMEngine:
    """vLLM's offline `LLM`, with one seed per prompt, so that scheduling does not change completions.

    Its dtype and end tokens are those of `TransformersEngine`.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], **options: Any):
        from vllm import LLM

        self.tokenizer = load_tokenizer(folder)
        self.ends = ends_of(generation_config_of(folder), self.tokenizer)
        self.llm = LLM(
            model=str(folder),
            dtype=dtype(settings),
            generation_config="vllm",  # not the folder's sampling parameters, but the study's
            gpu_memory_utilization=settings.get("vllm_gpu_memory_utilization", 0.9),
            max_model_len=settings.get("vllm_max_model_length"),
            tensor_parallel_size=settings.get("vllm_tensor_parallel_size", 1),
            **options,
        )

    def complete(self, batches: Sequence[Batch], settings: dict[str, Any]) -> list[Drawn]:
        """See the module. vLLM gets all requests at once: it computes as many together as its cache holds."""
        from vllm import SamplingParams, TokensPrompt

        names = ("temperature", "top_p")
        params = [
            SamplingParams(
                **({name: settings[name] for name in names} if decoding == "sampled" else {"temperature": 0.0}),
                max_tokens=settings["max_new_tokens"],
                seed=seed + position,
                stop_token_ids=sorted(self.ends),
                stop=settings.get("stop", []),
                include_stop_str_in_output=True,
            )
            for prompts, decoding, seed in batches
            for position in range(len(prompts))
        ]
        texts = [TokensPrompt(prompt_token_ids=list(ids)) for prompts, *_ in batches for ids in prompts]
        outputs = (request.outputs[0] for request in self.llm.generate(texts, params, use_tqdm=False))
        return [[(each.text, each.finish_reason) for each in islice(outputs, len(prompts))] for prompts, *_ in batches]


def load(folder: Path, settings: dict[str, Any]) -> TransformersEngine | VLLMEngine:
    """The engine of `backend_of`.

    Raises:
        ValueError: if the weights of the model are not all finite.
    """
    prepare(settings)
    check_weights(folder)
    backend = backend_of(settings)
    print(f"drawing completions with {backend}", flush=True)
    if backend == "vllm":
        return VLLMEngine(folder, settings)
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype(settings))
    return TransformersEngine(model.to("cuda" if on_gpu() else "cpu").eval(), load_tokenizer(folder))
