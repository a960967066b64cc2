"""MCGRPOTrainer with a real vLLM in its process. Every test builds engines: run with `make test-vllm`."""

import json
import random

import numpy as np
import pytest
import torch
from colocated import Watched, built, greedy, greedy_of_transformers, trained
from peft import LoraConfig
from tiny_training import PROMPTS, Ours, dataset, history, model_folder, texts_of, trainer_of

from mcgrpo.train.rollout_engine import engine_name


def states():
    return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A training that others are compared with."""
    return trained(tmp_path_factory.mktemp("first"), learning_rate=0.05, shuffle_dataset=False)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """A trainer with an engine; and the random state of a trainer without one, and after its engine was built."""
    folder = tmp_path_factory.mktemp("untrained")
    without = trainer_of(Ours, folder, beta=0.0)
    assert engine_name(without.args) == "transformers"
    before, threads = states(), torch.get_num_threads()
    trainer = built(folder, num_generations_eval=1, per_device_eval_batch_size=PROMPTS)
    assert torch.get_num_threads() == threads
    return trainer, before, states()


def prompts_of(trainer):
    return trainer.processing_class(list(dataset()["prompt"]))["input_ids"]


def check_weights(trainer):
    """vLLM was one step behind the weights that are trained, as it had drawn for that step; synchronized, it is not."""
    differences = history(trainer, "sampling/sampling_logp_difference/max")
    assert len(differences) == 3 and max(differences) < 1e-3
    calls, prompts = list(trainer.calls), prompts_of(trainer)
    assert greedy(trainer, prompts) != greedy_of_transformers(trainer, prompts)
    trainer.vllm_generation.sync_weights()
    assert greedy(trainer, prompts) == greedy_of_transformers(trainer, prompts)
    trainer.calls[:] = calls


def test_vllm_has_the_weights_that_are_trained(first):
    check_weights(first)


def test_sampling_habits_of_the_folder_reach_no_rollout(first, tmp_path):
    """As Qwen2.5-7B-Instruct's penalty of 1.05: vLLM has them for requests that say nothing; TRL's say all."""
    path = model_folder() / "generation_config.json"
    before = path.read_text()
    path.write_text(json.dumps(json.loads(before) | {"repetition_penalty": 9.0, "top_k": 2, "temperature": 0.1}))
    try:
        again = trained(tmp_path, learning_rate=0.05, shuffle_dataset=False)
        assert again.vllm_generation.llm.get_default_sampling_params().repetition_penalty == 9.0
    finally:
        path.write_text(before)
    assert again.drawn == first.drawn


class Doubted(Watched):
    """vLLM says of each token that it was e times less likely than it was."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        generate = self.vllm_generation.generate

        def shifted(*arguments, **options):
            prompts, completions, rows, tokens = generate(*arguments, **options)
            return prompts, completions, [[[one - 1 for one in each] for each in row] for row in rows], tokens

        self.vllm_generation.generate = shifted


def test_rows_that_importance_sampling_masks_are_counted_and_warned_of(first, tmp_path):
    share = "sampling/importance_sampling_ratio/frac_zero"
    assert history(first, share) == [0.0] * 3
    with pytest.warns(UserWarning, match="add nothing to the policy gradient") as caught:
        doubted = trained(tmp_path, Doubted, learning_rate=0.05, shuffle_dataset=False)
    assert len([each for each in caught if "policy gradient" in str(each.message)]) == 1
    for found, batch in zip(history(doubted, share), doubted.kept, strict=True):
        is_long = batch["completion_mask"][batch["advantages"] != 0].sum(dim=1) > 1  # e itself is below the bound, 3
        assert found == pytest.approx(is_long.double().mean().item()) and found > 0.5


def test_vllm_has_the_weights_with_the_adapters_that_are_trained(tmp_path):
    adapters = LoraConfig(r=8, target_modules="all-linear")
    check_weights(trained(tmp_path, peft_config=adapters, learning_rate=0.1))


def rows_of(trainer, batch):
    """Prompt, completion and advantage of each row."""
    prompts, completions = texts_of(trainer, batch, "prompt_ids"), texts_of(trainer, batch)
    return sorted(zip(prompts, completions, batch["advantages"].tolist(), strict=True))


def test_one_more_rollout_than_are_trained_on_is_drawn_of_each_prompt(first):
    """Of each of 2 prompts 5 rollouts were drawn and 4 kept, at every step; those with an advantage were trained on."""
    assert any(advantage for kept in first.kept for *_, advantage in rows_of(first, kept))
    for call, batch, trained_on in zip(first.calls, first.kept, first.batches, strict=True):
        assert len(call) == 10 and all(len(completions) == 1 for _, completions in call)
        assert call[0][0] != call[5][0]
        kept = rows_of(first, batch)
        for group in (call[:5], call[5:]):
            assert all(ids == group[0][0] for ids, _ in group)
            prompt = first.processing_class.decode(group[0][0], skip_special_tokens=True)
            drawn = [first.processing_class.decode(ids, skip_special_tokens=True) for _, (ids,) in group]
            for text in (texts := [text for of, text, _ in kept if of == prompt]):
                drawn.remove(text)
            assert len(texts) == 4 and len(drawn) == 1
        assert [row for row in rows_of(first, trained_on) if row[2]] == [row for row in kept if row[2]]
    assert len({tuple(ids) for call in first.drawn for ids in call}) > 20


def test_all_rollouts_of_a_batch_are_drawn_at_once(first):
    assert engine_name(first.args) == "vllm-colocate"
    assert first.vllm_generation.llm.llm_engine.vllm_config.scheduler_config.max_num_seqs == 10


def test_the_same_seed_draws_the_same_rollouts_whatever_was_drawn_before(first, tmp_path):
    torch.manual_seed(99), np.random.seed(99)
    again = trained(tmp_path, learning_rate=0.05, shuffle_dataset=False)
    assert again.calls == first.calls
    assert all(torch.equal(a, b) for a, b in zip(again.losses, first.losses, strict=True))


def test_another_seed_draws_other_rollouts_of_the_same_prompts(first, tmp_path):
    other = trained(tmp_path, seed=4, max_steps=1, shuffle_dataset=False)
    assert [prompt for prompt, _ in other.calls[0]] == [prompt for prompt, _ in first.calls[0]]
    assert other.drawn[0] != first.drawn[0]


def test_an_engine_leaves_the_random_state_of_training_alone(untrained):
    trainer, before, after = untrained
    assert after == before
    now = states()
    trainer.vllm_generation.generate(prompts_of(trainer), None, 4)
    assert states() == now


def test_every_generation_of_a_step_draws_anew(untrained):
    trainer, *_ = untrained
    prompts = prompts_of(trainer)[:1] * 8
    draw = [trainer.vllm_generation.generate(prompts, None, 4)[1] for _ in range(3)]
    assert draw[0] != draw[1] != draw[2] != draw[0]
    assert len({tuple(ids) for ids in draw[0]}) > 1
    trainer.model.eval()
    assert trainer.vllm_generation.generate(prompts, None, 4)[1] not in draw
    trainer.model.train()


def test_an_evaluation_draws_with_vllm_too(untrained):
    trainer, *_ = untrained
    trainer.calls.clear()
    trainer.evaluate(eval_dataset=dataset())
    assert [len(call) for call in trainer.calls] == [PROMPTS]


def test_a_resumed_training_draws_what_an_uninterrupted_one_draws(tmp_path):
    settings = {"max_steps": 4, "save_strategy": "steps", "save_steps": 2, "num_iterations": 2, "shuffle_dataset": True}
    whole = trained(tmp_path, **settings)
    resumed = built(tmp_path, **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert len(whole.calls) == 2 and resumed.calls == whole.calls[1:]
    assert all(torch.equal(a, b) for a, b in zip(resumed.losses, whole.losses[2:], strict=True))
