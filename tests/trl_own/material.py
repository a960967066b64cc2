"""The tiny models, tokenizers and data sets that TRL's tests name, as folders that are found without a hub.

Weights are random. With Qwen's vocabulary of 151,936 tokens the tests would take hours on a CPU: ours is smaller, and
the rows of fixed token ids that some tests hold are written in it (`own_ids`).
"""

import json
import re
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedTokenizerFast
from trl.chat_template_utils import qwen3_chat_template

ORGANISATION = "trl-internal-testing"
PIECES = json.loads(Path(__file__).with_name("qwen_pieces.json").read_text())
"""The pieces that tests have as fixed token ids of Qwen's vocabulary, with these ids; special tokens are last."""
FIRST_SPECIAL = list(PIECES).index("<|endoftext|>")
VOCABULARY = 32_768
"""As small as is quick, and so large that completions hardly ever end, as a test wants it."""

SPLITTER = pre_tokenizers.ByteLevel(add_prefix_space=False)

CAUSAL = {
    "tiny-Qwen2ForCausalLM-2.5": "Qwen2Config",
    "tiny-Qwen3ForCausalLM": "Qwen3Config",
    "tiny-Qwen3MoeForCausalLM": "Qwen3MoeConfig",
    "tiny-Cohere2ForCausalLM": "Cohere2Config",
    "tiny-Gemma2ForCausalLM": "Gemma2Config",
    "tiny-Glm4MoeForCausalLM": "Glm4MoeConfig",
    "tiny-GptOssForCausalLM": "GptOssConfig",
    "tiny-NemotronHForCausalLM-nano": "NemotronHConfig",
}
REWARD = {
    "tiny-Qwen2ForSequenceClassification-2.5": "Qwen2Config",
    "tiny-Qwen3ForSequenceClassification": "Qwen3Config",
    "tiny-LlamaForSequenceClassification-3.2": "LlamaConfig",
}
SIZES = {
    **{"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "initializer_range": 0.05},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 2},
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **{"num_experts_per_tok": 2, "moe_intermediate_size": 16, "moe_shared_expert_intermediate_size": 16},
    **{"layers_block_type": ["linear_attention", "moe"], "mamba_num_heads": 4},
    **{"mamba_head_dim": 4, "n_groups": 2, "ssm_state_size": 4, "chunk_size": 8, "mlp_hidden_act": "relu2"},
}
"""Of every architecture: a configuration keeps what it has no use for."""

PROMPTS = [
    "Beautiful is better than",
    "Explicit is",
    "Simple is better",
    "Complex",
    "Flat is better than",
    "Sparse is better",
    "Readability",
    "Special cases aren't special",
    "Although practicality beats",
    "Errors should never",
    "Unless explicitly",
    "In the face of ambiguity, refuse",
]
"""The first prompts of TRL's data set, in its order, which a test knows."""


def write(folder: Path) -> None:
    """Write all of it below the folder that becomes the working directory."""
    home, words = folder / ORGANISATION, tokenizer()
    torch.manual_seed(0)
    for names, kind in ((CAUSAL, AutoModelForCausalLM), (REWARD, AutoModelForSequenceClassification)):
        for name, config in names.items():
            kind.from_config(configuration(config, words)).save_pretrained(home / name)
            words.save_pretrained(home / name)
    write_remote(home / "tiny-RemoteForCausalLM", words)
    write_data(home / "zen")


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
    end, *others = list(PIECES)[FIRST_SPECIAL:]
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token=end,
        eos_token="<|im_end|>",
        additional_special_tokens=others,
        chat_template=qwen3_chat_template,
        padding_side="left",
    )


def configuration(name: str, words: PreTrainedTokenizerFast) -> transformers.PreTrainedConfig:
    ends = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id, "bos_token_id": None}
    return getattr(transformers, name)(vocab_size=VOCABULARY, num_labels=1, **ends, **SIZES)


REMOTE = """from transformers import Qwen2Config, Qwen2ForCausalLM


class RemoteConfig(Qwen2Config):
    model_type = "remote"


class RemoteForCausalLM(Qwen2ForCausalLM):
    config_class = RemoteConfig
"""


def write_remote(folder: Path, words: PreTrainedTokenizerFast) -> None:
    """A model whose code is beside its weights."""
    model = transformers.Qwen2ForCausalLM(configuration("Qwen2Config", words))
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    (folder / "remote.py").write_text(REMOTE)
    config = json.loads((folder / "config.json").read_text())
    own = {"AutoConfig": "remote.RemoteConfig", "AutoModelForCausalLM": "remote.RemoteForCausalLM"}
    own = {"model_type": "remote", "architectures": ["RemoteForCausalLM"], "auto_map": own}
    (folder / "config.json").write_text(json.dumps(config | own))


def write_data(folder: Path) -> None:
    """Prompts as text and as messages, as JSON lines whose configurations a README names."""
    formats = {
        "standard_prompt_only": lambda text: text,
        "conversational_prompt_only": lambda text: [{"role": "user", "content": text}],
    }
    configs = []
    for name, form in formats.items():
        (folder / name).mkdir(parents=True)
        for split, prompts in {"train": PROMPTS, "test": PROMPTS[:2]}.items():
            lines = [json.dumps({"prompt": form(prompt)}) + "\n" for prompt in prompts]
            (folder / name / f"{split}.jsonl").write_text("".join(lines))
        files = [{"split": split, "path": f"{name}/{split}.jsonl"} for split in ("train", "test")]
        configs.append({"config_name": name, "data_files": files})
    (folder / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
