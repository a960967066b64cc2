"""Two tokenizers built in code: words for the toy task, bytes for any text. Both pad on the left."""

from collections.abc import Callable
from itertools import chain

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from mcgrpo.data.toy.demonstrator import MARKUP
from mcgrpo.data.toy.task import ITEMS, LARGEST, PEOPLE, WORDS

_PIECES = r"</?[a-z]+>|\\boxed\{| ?[A-Za-z]+|[1-9]?[0-9]|[^A-Za-z0-9]"

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)
"""ChatML, for system, user and assistant turns."""


def word_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each word, with the space before it, and for each number in 0..99; no chat template.

    Text outside the toy task's vocabulary becomes `<unk>`.
    """
    spoken = ["has", "with", "each", "and", "more", "How", "many", *ITEMS, *chain(*WORDS.values())]
    words = [form for word in [*PEOPLE, *spoken] for form in (word, f" {word}")]
    numbers = [str(number) for number in range(LARGEST + 1)]
    specials = ["<pad>", "<eos>", "<unk>"]
    pieces = [*specials, *MARKUP, *" .?;+-*=", *numbers, *words]
    tokenizer = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_PIECES), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return _wrap(tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token per byte of UTF-8, so that any text is encoded without loss, and a ChatML template (259 tokens)."""
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    pieces = specials + sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    wrapped = _wrap(
        tokenizer, pad_token="<|endoftext|>", eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>"]
    )
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def _wrap(tokenizer: Tokenizer, **specials: str | list[str]) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
        **specials,
    )


TOKENIZERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {"word": word_tokenizer, "bytes": byte_tokenizer}
