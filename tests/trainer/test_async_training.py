"""Asynchronous GRPO trains on the CPU, all but TRL's attention kernel and the sending of weights, which need a GPU."""

from itertools import pairwise
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch
import trl
from completion_server import QUESTIONS, chat_tokenizer, digit_reward, serving
from datasets import Dataset
from packaging.version import Version
from tiny_training import SPEC
from torch.nn.functional import scaled_dot_product_attention
from trl.experimental.async_grpo import async_rollout_worker

from mcgrpo import estimate
from mcgrpo.data.toy.models import build
from mcgrpo.trainer.async_grpo import MCAsyncGRPOConfig, MCAsyncGRPOTrainer

pytestmark = [
    pytest.mark.law,
    pytest.mark.slow,
    pytest.mark.skipif(Version(trl.__version__) < Version("1.16"), reason="TRL calls another kernel"),
]


def varlen_attention(query, key, value, starts, path_starts, *lengths, softmax_scale, **others):
    """`flash_attn_varlen_func` on the CPU: the tokens of a segment are the last of their path and see all before."""
    parts = []
    for (start, end), (first, last) in zip(pairwise(starts.tolist()), pairwise(path_starts.tolist()), strict=True):
        seen = torch.ones(end - start, last - first, dtype=torch.bool).tril(last - first - (end - start))
        q, k, v = (each.transpose(0, 1) for each in (query[start:end], key[first:last], value[first:last]))
        part = scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=softmax_scale, enable_gqa=True)
        parts.append(part.transpose(0, 1))
    return torch.cat(parts)


class Watched(MCAsyncGRPOTrainer):
    """Keeps the advantages of the rows of each batch, sorted."""

    def compute_loss(self, model, inputs, **others):
        loss = super().compute_loss(model, inputs, **others)
        rows = inputs["segment_id"][0].tolist()
        advantages = dict(zip(rows, inputs["advantages"][0].tolist(), strict=True))
        self.batches = [*getattr(self, "batches", []), sorted(advantages.values())]
        return loss


def test_a_training_is_of_the_rollouts_that_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(async_rollout_worker, "is_vllm_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "CPU")
    kernel = SimpleNamespace(flash_attn_varlen_func=varlen_attention)
    monkeypatch.setattr("trl.experimental.async_grpo.packing._flash_attn", lambda: kernel)
    settings = {"estimator": "median-mad", "mad_zero": "std", "num_generations": 4, "per_device_train_batch_size": 4}
    settings |= {"max_steps": 2, "learning_rate": 1e-2, "token_budget": 0, "max_inflight_tasks": 5}  # a group at a time
    build(SPEC | {"tokenizer": "bytes"}, tmp_path / "model")
    with serving() as url:
        args = MCAsyncGRPOConfig(
            str(tmp_path), use_cpu=True, bf16=False, report_to="none", vllm_server_base_url=url, **settings
        )
        trainer = Watched(
            str(tmp_path / "model"),
            digit_reward,
            args,
            train_dataset=Dataset.from_list(QUESTIONS),
            processing_class=chat_tokenizer(),
            weight_transfer=MagicMock(),
        )
        before = {name: weights.detach().clone() for name, weights in trainer.model.named_parameters()}
        trainer.train()
    rewards = torch.arange(5.0).double()[None]
    advantages, keep, _ = estimate(rewards, "median-mad", 4, mad_zero="std")
    expected = pytest.approx(advantages[keep].tolist())
    assert len(trainer.batches) == 2 and all(batch == expected for batch in trainer.batches)
    assert any(not torch.equal(before[name], weights) for name, weights in trainer.model.named_parameters())
