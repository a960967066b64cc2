"""Generation with a small model in fewer calls: a decoding step is the model's own operations in one function.

With a layer or two on a CPU, most of the time of a decoding step is spent between the operations: in modules, hooks,
masks and in copying the cache for every token. The logits are those of transformers, bit for bit. A prompt of several
rollouts is computed once. A token is drawn with one random number, where `torch.multinomial` takes one for each token
of the vocabulary.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu
from transformers import DynamicCache
from transformers.generation import GenerationMode
from transformers.modeling_outputs import BaseModelOutputWithPast

from mcgrpo.data.sampling import sampling

ROOM = 64
"""Tokens that the cache grows by."""


def with_quick_decoding(model: Any) -> Any:
    """The model, whose decoding steps take the short way wherever that computes the same (`QuickDecoder.fits`)."""
    config = model.config
    if (
        config.model_type in ("qwen3", "llama")
        and config.hidden_act == "silu"
        and config._attn_implementation == "sdpa"
        and config.num_key_value_heads == config.num_attention_heads
        and config.attention_dropout == 0
        and not config.attention_bias
        and not getattr(config, "mlp_bias", False)
        and set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
    ):
        model.model.forward = QuickDecoder(model.model)
        model.generate = QuickSampling(model)
    return model


class QuickSampling:
    """Stands in for the `generate` of a model: where it samples on a CPU, by `mcgrpo.data.sampling`."""

    def __init__(self, model: Any):
        self.model, self.generate = model, model.generate

    def __call__(self, *args: Any, generation_config: Any = None, **options: Any) -> Any:
        """As `generate`."""
        config = copy.deepcopy(self.model.generation_config)
        if generation_config is not None:
            config.update(**{name: each for name, each in generation_config.to_dict().items() if each is not None})
        rest = config.update(**options)
        if not self.fits(config):
            return self.generate(*args, generation_config=generation_config, **options)
        processors = sampling(*(1.0 if each is None else each for each in (config.temperature, config.top_p)))
        config.update(do_sample=False, temperature=None, top_p=None, top_k=None)
        processors = [*(rest.pop("logits_processor", None) or []), *processors]
        return self.generate(*args, generation_config=config, logits_processor=processors, **rest)

    def fits(self, config: Any) -> bool:
        """Whether tokens are sampled one by one, by temperature and `top_p` alone."""
        others = ("top_k", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff", "watermarking_config")
        return (
            config.get_generation_mode() is GenerationMode.SAMPLE
            and self.model.device.type == "cpu"
            and all(getattr(config, name, None) in (None, 0, 1.0) for name in others)
        )


class QuickDecoder:
    """Stands in for the `forward` of a `Qwen3Model` or `LlamaModel`."""

    def __init__(self, model: Any):
        self.model, self.forward = model, model.forward
        self.weights: list[tuple[Any, ...]] = []
        self.cache: dict[int, list[Tensor]] = {}

    def __call__(self, input_ids: Tensor | None = None, past_key_values: Any = None, **others: Any) -> Any:
        """A decoding step or prompts if they fit, else the model's own `forward`."""
        if not self.fits(input_ids, past_key_values, others):
            self.weights, self.cache = [], {}
            if self.are_prompts(input_ids, past_key_values, others):
                return self.prompts(input_ids, past_key_values, **others)
            return self.forward(input_ids=input_ids, past_key_values=past_key_values, **others)
        hidden = self.step(input_ids, past_key_values, others["attention_mask"], others["position_ids"])
        return BaseModelOutputWithPast(last_hidden_state=hidden, past_key_values=past_key_values)

    def fits(self, input_ids: Tensor | None, past_key_values: Any, others: dict[str, Any]) -> bool:
        """Whether this is a step after a prompt, without gradient, of plain fp32 layers (no adapters, shards, GPUs)."""
        if torch.is_grad_enabled() or input_ids is None or input_ids.shape[1] != 1 or input_ids.is_cuda:
            return False
        if torch.is_autocast_enabled("cpu"):
            return False
        if past_key_values is None or not _is_plain(others):
            return False
        if not self.weights:
            # In another dtype `rms_norm` rounds at other places than the model's norms.
            plain = all(type(each) is nn.Parameter and each.dtype is torch.float32 for each in self.model.parameters())
            if plain and not any(hasattr(each, "base_layer") for each in self.model.modules()):
                self.weights = [self._weights(layer) for layer in self.model.layers]
        return bool(self.weights)

    @staticmethod
    def are_prompts(input_ids: Tensor | None, past_key_values: Any, others: dict[str, Any]) -> bool:
        """Whether this fills an empty cache, without gradient, on a CPU."""
        if torch.is_grad_enabled() or input_ids is None or input_ids.is_cuda or not _is_plain(others):
            return False
        return isinstance(past_key_values, DynamicCache) and past_key_values.get_seq_length() == 0

    def prompts(
        self, input_ids: Tensor, cache: Any, attention_mask: Tensor, position_ids: Tensor, **others: Any
    ) -> Any:
        """The model's own `forward`, of rows that follow one another and are equal only once."""
        rows = torch.stack([input_ids, attention_mask, position_ids], dim=1)
        once, row = torch.unique_consecutive(rows, dim=0, return_inverse=True)
        names = ("input_ids", "attention_mask", "position_ids")
        inputs = dict(zip(names, once.unbind(1), strict=True))
        hidden = self.forward(**inputs, past_key_values=cache, **others).last_hidden_state
        cache.batch_select_indices(row)
        return BaseModelOutputWithPast(last_hidden_state=hidden[row], past_key_values=cache)

    @staticmethod
    def _weights(layer: Any) -> tuple[Any, ...]:
        attention, mlp = layer.self_attn, layer.mlp
        norms = [getattr(attention, name).weight if hasattr(attention, name) else None for name in ("q_norm", "k_norm")]
        projections = [getattr(attention, f"{name}_proj").weight for name in "qkvo"]
        feed_forward = [getattr(mlp, f"{name}_proj").weight for name in ("gate", "up", "down")]
        return layer.input_layernorm.weight, layer.post_attention_layernorm.weight, *norms, *projections, *feed_forward

    def step(self, input_ids: Tensor, cache: Any, attention_mask: Tensor, position_ids: Tensor) -> Tensor:
        """(rows, 1) tokens -> (rows, 1, hidden size) hidden states; the keys and values are added to the cache."""
        model, rows = self.model, len(input_ids)
        width, epsilon = model.layers[0].self_attn.head_dim, model.config.rms_norm_eps
        hidden = embedding(input_ids, model.embed_tokens.weight)
        turn = [each.unsqueeze(1) for each in model.rotary_emb(hidden, position_ids)]
        mask = None if attention_mask.all() else attention_mask.bool()[:, None, None, :]
        for index, (norm, later_norm, q_norm, k_norm, wq, wk, wv, wo, gate, up, down) in enumerate(self.weights):
            inputs = rms_norm(hidden, norm.shape, norm, epsilon)
            query, key, value = (linear(inputs, weight).view(rows, 1, -1, width) for weight in (wq, wk, wv))
            if q_norm is not None:
                query, key = (rms_norm(x, w.shape, w, epsilon) for x, w in ((query, q_norm), (key, k_norm)))
            query, key = (_turned(each.transpose(1, 2), *turn) for each in (query, key))
            keys, values = self._append(cache.layers[index], index, key, value.transpose(1, 2))
            attended = scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=width**-0.5)
            hidden = hidden + linear(attended.transpose(1, 2).reshape(rows, 1, -1), wo)
            inputs = rms_norm(hidden, later_norm.shape, later_norm, epsilon)
            hidden = hidden + linear(silu(linear(inputs, gate)) * linear(inputs, up), down)
        return rms_norm(hidden, model.norm.weight.shape, model.norm.weight, epsilon)

    def _append(self, layer: Any, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add a token to a layer's cache, which is a view of a larger tensor: nothing else is copied."""
        length = layer.keys.shape[2]
        grown = self.cache.setdefault(index, [])
        if not grown or grown[0].data_ptr() != layer.keys.data_ptr():  # a new cache, or reordered by a beam search
            grown[:] = [layer.keys, layer.values]
        if grown[0].shape[2] == length:
            grown[:] = [
                torch.cat([each, each.new_empty(*each.shape[:2], ROOM, each.shape[3])], dim=2) for each in grown
            ]
        for whole, new in zip(grown, (key, value), strict=True):
            whole[:, :, length] = new[:, :, 0]
        layer.keys, layer.values = (whole[:, :, : length + 1] for whole in grown)
        return layer.keys, layer.values


def _is_plain(others: dict[str, Any]) -> bool:
    """Whether `forward` is called with a mask and positions of each token, and with nothing else."""
    mask, positions = others.get("attention_mask"), others.get("position_ids")
    rest = others.keys() - {"attention_mask", "position_ids", "use_cache"}
    return (
        mask is not None
        and mask.dim() == 2
        and positions is not None
        and all(others[name] is None or others[name] is False for name in rest)
    )


def _turned(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`apply_rotary_pos_emb` of transformers, of one tensor."""
    first, second = states.chunk(2, dim=-1)
    return states * cos + torch.cat((-second, first), dim=-1) * sin
