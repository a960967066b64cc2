"""The tiny models, tokenizers and data sets that TRL's tests name, as folders that are found without a hub.

Weights are random. With Qwen's vocabulary of 151,936 tokens the tests would take hours on a CPU: ours is smaller, and
the rows of fixed token ids that some tests hold are written in it (`own_ids`). `material.json` has

- pieces: those that fixed rows are made of, with Qwen's ids; special tokens are last;
- prompts: the first of TRL's data set, in its order, which a test knows;
- models, and the sizes of all of them: a configuration keeps what it has no use for.
"""

import json
import re
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from trl.chat_template_utils import qwen3_chat_template

MATERIAL = json.loads(Path(__file__).with_name("material.json").read_text())
PIECES, PROMPTS, MODELS, SIZES = (MATERIAL[name] for name in ("pieces", "prompts", "models", "sizes"))
END, *SPECIALS = list(PIECES)[list(PIECES).index("<|endoftext|>") :]
VOCABULARY = 32_768
"""As small as is quick, and so large that completions hardly ever end, as a test wants it."""
SPLITTER = pre_tokenizers.ByteLevel(add_prefix_space=False)
REMOTE = "tiny-RemoteForCausalLM"
REMOTE_CODE = """from transformers import Qwen2Config, Qwen2ForCausalLM


class RemoteConfig(Qwen2Config):
    model_type = "remote"


class RemoteForCausalLM(Qwen2ForCausalLM):
    config_class = RemoteConfig
"""


def write(folder: Path, prompts: list[str]) -> None:
    """Write all of it below a folder that becomes the working directory, with these prompts as the training data."""
    home, words = folder / "trl-internal-testing", tokenizer()
    torch.manual_seed(0)
    for name in MODELS:
        model(name, words).save_pretrained(home / name)
        words.save_pretrained(home / name)
    model("tiny-Qwen2ForCausalLM", words).save_pretrained(home / REMOTE)
    words.save_pretrained(home / REMOTE)
    add_code(home / REMOTE)
    write_data(home / "zen", prompts)


def spelled(text: str) -> list[str]:
    """The words of a text in the alphabet of bytes."""
    return [word for word, _ in SPLITTER.pre_tokenize_str(text)]


def vocabulary() -> dict[str, int]:
    """Bytes with Qwen's ids, the pieces of fixed rows, and the words of prompts."""
    pieces = ["".join(spelled(piece)) for piece in PIECES]
    words = sorted({*spelled(" ".join([qwen3_chat_template, *PROMPTS]))})
    tokens = dict.fromkeys([*sorted(pre_tokenizers.ByteLevel.alphabet()), *pieces, *words])
    return {token: i for i, token in enumerate(tokens)}


def own_ids(source: str) -> str:
    """The source of tests with their rows of Qwen's token ids in `vocabulary`."""
    own = vocabulary()
    ids = {str(i): str(own["".join(spelled(piece))]) for piece, i in PIECES.items()}
    row = re.compile(r"^ *\[\d+(?:, \d+)+\],", re.MULTILINE)
    return row.sub(lambda found: re.sub(r"\d+", lambda i: ids.get(i[0], i[0]), found[0]), source)


def tokenizer() -> PreTrainedTokenizerFast:
    """Splits text into words, and a word that is not in the vocabulary into bytes."""
    made = Tokenizer(models.BPE(vocab=vocabulary(), merges=[], ignore_merges=True))
    made.pre_tokenizer, made.decoder = SPLITTER, decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token=END,
        eos_token="<|im_end|>",
        additional_special_tokens=SPECIALS,
        chat_template=qwen3_chat_template,
        padding_side="left",
    )


def model(name: str, words: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Of the architecture that the name tells, `tiny-(architecture)For(task)`."""
    architecture, task = re.match(r"tiny-(\w+)For(\w+)", name).groups()
    ends = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id, "bos_token_id": None}
    config = getattr(transformers, f"{architecture}Config")(vocab_size=VOCABULARY, num_labels=1, **ends, **SIZES)
    return getattr(transformers, f"AutoModelFor{task}").from_config(config)


def add_code(folder: Path) -> None:
    """Make it a model whose code is beside its weights."""
    (folder / "remote.py").write_text(REMOTE_CODE)
    config = json.loads((folder / "config.json").read_text())
    code = {"AutoConfig": "remote.RemoteConfig", "AutoModelForCausalLM": "remote.RemoteForCausalLM"}
    config |= {"model_type": "remote", "architectures": ["RemoteForCausalLM"], "auto_map": code}
    (folder / "config.json").write_text(json.dumps(config))


def write_data(folder: Path, training: list[str]) -> None:
    """Prompts as text and as messages, in JSON lines that a README names."""
    forms = {"standard": lambda text: text, "conversational": lambda text: [{"role": "user", "content": text}]}
    configs = []
    for name, form in forms.items():
        (folder / name).mkdir(parents=True)
        for split, prompts in {"train": training, "test": PROMPTS[:2]}.items():
            lines = [json.dumps({"prompt": form(prompt)}) + "\n" for prompt in prompts]
            (folder / name / f"{split}.jsonl").write_text("".join(lines))
        files = [{"split": split, "path": f"{name}/{split}.jsonl"} for split in ("train", "test")]
        configs.append({"config_name": f"{name}_prompt_only", "data_files": files})
    (folder / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
