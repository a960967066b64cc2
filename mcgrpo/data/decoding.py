"""Generation with a small model in fewer calls: a decoding step is the model's own operations in one function.

With a layer or two on a CPU, most of the time of a decoding step is spent between the operations: in modules, hooks,
masks and in copying the cache for every token. The logits are those of transformers, bit for bit. A prompt of several
rollouts is computed once, and rollouts that have ended are left out. A token is drawn with one random number
(`mcgrpo.data.sampling`).
"""

import functools
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu
from transformers import DynamicCache
from transformers.generation import GenerationMode
from transformers.generation.utils import GENERATION_MODES_MAPPING

from mcgrpo.data.sampling import InverseTransform

KEPT_SHARE = 0.75
"""Rows that have ended are left out once the others are at most this share: copying the cache costs a step or two."""


def with_quick_decoding(model: Any, fixed: bool = False) -> Any:
    """The model, which decodes the short way wherever that computes the same (`fits`).

    Args:
        model: a causal language model of transformers.
        fixed: its weights do not change any more, so that the same prompts, given again, are not computed again.
    """
    config = model.config
    if (
        config.model_type in ("qwen3", "llama")
        and config.hidden_act == "silu"
        and config._attn_implementation == "sdpa"
        and config.num_key_value_heads == config.num_attention_heads
        and config.attention_dropout == 0
        and not config.attention_bias
        and not getattr(config, "mlp_bias", False)
        and config.rope_parameters.get("rope_type") == "default"
        and set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
    ):
        way = functools.partial(decode, known=KnownPrompts()) if fixed else decode
        model.generate = functools.partial(model.generate, custom_generate=way)
    return model


def decode(
    model: Any,
    input_ids: Tensor,
    logits_processor: Any,
    stopping_criteria: Any,
    generation_config: Any,
    known: "KnownPrompts | None" = None,
    **inputs: Any,
) -> Any:
    """The decoding of `generate(custom_generate=...)`: greedy or sampled; what does not fit is left to transformers.

    Args:
        input_ids: (rows, length) prompts, padded on the left.
        known: of earlier calls; None for none.
        inputs: of the model's `forward`.

    Returns:
        (rows, longest) prompts and completions; after its end a completion is padded.
    """
    if not fits(model, generation_config, inputs):
        usual = getattr(type(model), GENERATION_MODES_MAPPING[generation_config.get_generation_mode()])
        shared = {"logits_processor": logits_processor, "stopping_criteria": stopping_criteria}
        return usual(model, input_ids, generation_config=generation_config, **shared, **inputs)
    start, pad = input_ids.size(1), generation_config.pad_token_id
    room = input_ids.new_full((len(input_ids), generation_config.max_length - start), 0 if pad is None else pad)
    sequences = torch.cat([input_ids, room], dim=1)
    draw = InverseTransform(input_ids) if generation_config.do_sample else None
    decoder = Decoder(model.model, sequences, start, inputs, known or KnownPrompts())
    rows, goes_on = torch.arange(len(input_ids)), torch.ones(len(input_ids), dtype=torch.bool)
    for length in range(start, sequences.size(1)):
        scores = logits_processor(sequences[rows, :length], model.lm_head(decoder.hidden))
        tokens = scores.argmax(dim=-1) if draw is None else draw(scores, length, rows)
        tokens = tokens.where(goes_on, sequences[rows, length])
        sequences[rows, length] = tokens
        goes_on &= ~stopping_criteria(sequences[rows, : length + 1], scores)
        left = int(goes_on.sum())
        if not left:
            return sequences[:, : length + 1]
        if left <= KEPT_SHARE * len(rows):
            decoder.keep(goes_on)
            rows, tokens, goes_on = rows[goes_on], tokens[goes_on], goes_on[goes_on]
        decoder.step(tokens)
    return sequences


def fits(model: Any, generation_config: Any, inputs: dict[str, Any]) -> bool:
    """Whether tokens are decoded one by one, with plain fp32 layers (no adapters, shards, GPUs), and nothing else."""
    modes = GenerationMode.SAMPLE, GenerationMode.GREEDY_SEARCH
    known = {"attention_mask", "position_ids", "past_key_values", "use_cache", "logits_to_keep"}
    return (
        generation_config.get_generation_mode() in modes
        and not generation_config.return_dict_in_generate
        and all(each is None or each is False for name, each in inputs.items() if name not in known)
        and isinstance(inputs.get("past_key_values"), DynamicCache)
        and inputs["past_key_values"].get_seq_length() == 0
        and inputs["attention_mask"].dim() == 2
        and inputs.get("position_ids") is not None
        and not torch.is_autocast_enabled("cpu")
        # In another dtype `rms_norm` rounds at other places than the model's norms.
        and all(type(each) is nn.Parameter and each.dtype is torch.float32 for each in model.parameters())
        and all(each.device.type == "cpu" for each in model.parameters())
        and not any(hasattr(each, "base_layer") for each in model.modules())
    )


class KnownPrompts:
    """The states of the prompts that were computed last."""

    def __init__(self) -> None:
        self.prompts: Tensor | None = None
        self.last: Any = None

    def states(self, model: Any, prompts: Tensor, cache: DynamicCache) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """The hidden state of the last token of each prompt, and by layer the keys and values of all.

        Args:
            model: a `Qwen3Model` or `LlamaModel`.
            prompts: (prompts, 3, length) token ids, attention mask and positions.
            cache: an empty one.
        """
        if self.prompts is None or not torch.equal(self.prompts, prompts):
            ids, mask, at = prompts.unbind(1)
            made = model(ids, attention_mask=mask, position_ids=at, past_key_values=cache, use_cache=True)
            self.last = made.last_hidden_state[:, -1], [(layer.keys, layer.values) for layer in cache.layers]
            self.prompts = prompts
        return self.last


class Decoder:
    """The hidden states of the last tokens, (rows, hidden size), and the cache that the next step needs.

    Args:
        model: a `Qwen3Model` or `LlamaModel`.
        sequences: (rows, longest) prompts and room for completions.
        start: length of the prompts.
        inputs: of the model's `forward`, with an empty cache.
        known: prompts that need not be computed.
    """

    def __init__(self, model: Any, sequences: Tensor, start: int, inputs: dict[str, Any], known: KnownPrompts):
        self.model, self.width, self.epsilon = model, model.layers[0].self_attn.head_dim, model.config.rms_norm_eps
        self.weights = [_weights(layer) for layer in model.layers]
        names = ("attention_mask", "position_ids")
        prompts = torch.stack([sequences[:, :start], *(inputs[name].expand(len(sequences), -1) for name in names)], 1)
        once, row = torch.unique_consecutive(prompts, dim=0, return_inverse=True)
        hidden, cache = known.states(model, once, inputs["past_key_values"])
        _, mask, positions = once.unbind(1)
        self.hidden, self.length, self.positions = hidden[row], start, positions[row, -1]
        longest = sequences.size(1) - 1
        self.caches = [tuple(_with_room(each, row, longest) for each in layer) for layer in cache]
        self.mask = None if mask.all() else nn.functional.pad(mask[row].bool(), (0, longest - start), value=True)
        cos, sin = model.rotary_emb(self.hidden, torch.arange(longest).unsqueeze(0))
        self.turns = cos[0], sin[0]

    def keep(self, rows: Tensor) -> None:
        """Leave out all rows but these; (rows,) booleans."""
        self.positions = self.positions[rows]
        self.mask = None if self.mask is None else self.mask[rows]
        left = rows.nonzero().squeeze(1)
        self.caches = [
            tuple(_with_room(each[:, :, : self.length], left, each.size(2)) for each in at) for at in self.caches
        ]

    def step(self, tokens: Tensor) -> None:
        """Add a token to each row, (rows,)."""
        self.positions = self.positions + 1
        self.length += 1
        rows = len(tokens)
        hidden = embedding(tokens, self.model.embed_tokens.weight)
        cos, sin = (each[self.positions].view(rows, 1, 1, -1) for each in self.turns)
        mask = None if self.mask is None else self.mask[:, None, None, : self.length]
        for cache, (norm, later_norm, q_norm, k_norm, wq, wk, wv, wo, gate, up, down) in zip(
            self.caches, self.weights, strict=True
        ):
            inputs = rms_norm(hidden, norm.shape, norm, self.epsilon)
            query, key, value = (linear(inputs, weight).view(rows, -1, 1, self.width) for weight in (wq, wk, wv))
            if q_norm is not None:
                query, key = (rms_norm(x, w.shape, w, self.epsilon) for x, w in ((query, q_norm), (key, k_norm)))
            query, key = (_turned(each, cos, sin) for each in (query, key))
            for whole, new in zip(cache, (key, value), strict=True):
                whole[:, :, self.length - 1] = new[:, :, 0]
            keys, values = (whole[:, :, : self.length] for whole in cache)
            attended = scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=self.width**-0.5)
            hidden = hidden + linear(attended.view(rows, -1), wo)
            inputs = rms_norm(hidden, later_norm.shape, later_norm, self.epsilon)
            hidden = hidden + linear(silu(linear(inputs, gate)) * linear(inputs, up), down)
        last = self.model.norm.weight
        self.hidden = rms_norm(hidden, last.shape, last, self.epsilon)


def _weights(layer: Any) -> tuple[Any, ...]:
    attention, mlp = layer.self_attn, layer.mlp
    norms = [getattr(attention, name).weight if hasattr(attention, name) else None for name in ("q_norm", "k_norm")]
    projections = [getattr(attention, f"{name}_proj").weight for name in "qkvo"]
    feed_forward = [getattr(mlp, f"{name}_proj").weight for name in ("gate", "up", "down")]
    return layer.input_layernorm.weight, layer.post_attention_layernorm.weight, *norms, *projections, *feed_forward


def _with_room(cache: Tensor, rows: Tensor, longest: int) -> Tensor:
    """The given rows of a cache, (rows, heads, length, width), with room for `longest` tokens."""
    whole = cache.new_empty(len(rows), cache.size(1), longest, cache.size(3))
    whole[:, :, : cache.size(2)] = cache[rows]
    return whole


def _turned(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`apply_rotary_pos_emb` of transformers, of one tensor."""
    first, second = states.chunk(2, dim=-1)
    return states * cos + torch.cat((-second, first), dim=-1) * sin
