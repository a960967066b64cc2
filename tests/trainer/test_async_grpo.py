"""TRL's asynchronous GRPO through its own rollout loop: what the estimator drops is not trained on."""

import asyncio
import multiprocessing
import queue
import sys
from contextlib import contextmanager
from inspect import signature
from threading import Thread

import pytest
import torch
import trl
from accelerate import PartialState
from completion_server import QUESTIONS, Environment, add, chat_tokenizer, digit_reward, serving
from datasets import Dataset
from packaging.version import Version
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, async_rollout_worker
from trl.experimental.async_grpo.async_rollout_worker import AsyncRolloutWorker, RolloutGroup, TrainingSequence

import mcgrpo.trainer
from mcgrpo import estimate
from mcgrpo.estimators import ESTIMATORS, Estimator
from mcgrpo.estimators.baselines import batch_mean
from mcgrpo.trainer.async_grpo import MCAsyncGRPOConfig, MCAsyncGRPOTrainer, MCRolloutLoop, MCRolloutWorker
from mcgrpo.trainer.config import EstimatorArguments

MEDIAN = EstimatorArguments(estimator="median-mad", mad_zero="std")
pytestmark = [
    pytest.mark.law,
    pytest.mark.skipif(not hasattr(AsyncRolloutWorker, "_loop_cls"), reason="TRL's loop cannot be replaced"),
]


class Recorded(MCRolloutLoop):
    """Keeps the groups that it scores."""

    def __init__(self, **arguments):
        self.groups = []
        super().__init__(**arguments)

    async def _score_group(self, group):
        self.groups.append(group)
        return await super()._score_group(group)


def loop_of(estimation=MEDIAN, num_generations=4, url="http://nowhere", **changes):
    PartialState()  # as in the worker's process
    value = multiprocessing.get_context("spawn").Value
    given = {
        "model_name": "none",
        "dataset": Dataset.from_list(QUESTIONS),
        "reward_funcs": [digit_reward],
        "processing_class": chat_tokenizer(),
        "rollout_buffer": queue.Queue(),
        "model_version_value": value("i", 0),
        "heartbeat_value": value("d", 0.0),
        "failed_event": multiprocessing.Event(),
        "exception_info_queue": queue.Queue(),
        "metrics_queue": queue.Queue(),
        "max_inflight_tasks": 5,
        "max_tokens": 99,
        "vllm_server_url": url,
    }
    if Version(trl.__version__) >= Version("1.13"):
        given["eos_token_ids"] = [chat_tokenizer().eos_token_id]
    return Recorded(num_generations=num_generations, estimation=estimation, **given | changes)


def group_of(rewards, rows=None):
    """A group as the generate loop leaves it: the tokens of rollout i are 10 + i, in `rows[i]` rows."""
    rows = [1] * len(rewards) if rows is None else rows
    return RolloutGroup(
        prompts=[QUESTIONS[0]["prompt"]] * len(rewards),
        reward_kwargs={"answer": [0] * len(rewards), "reward": rewards},
        completions=[[{"role": "assistant", "content": "It is 1."}] for _ in rewards],
        completions_ids=[[10 + i] * (i + 1) for i in range(len(rewards))],
        completions_sequences=[
            [TrainingSequence([1, 10 + i], [0, 1], [0.0, -1.0], str(i)) for _ in range(count)]
            for i, count in enumerate(rows)
        ],
        tool_call_counts=[0] * len(rewards),
        tool_failure_counts=[0] * len(rewards),
        model_version=0,
        group_id=7,
        env_rewards=[None] * len(rewards),
        rollout_rewards=[None] * len(rewards),
    )


def given_reward(reward, **columns):
    return reward


def scored(rewards, rows=None, **changes):
    """(rollout, advantage) of each row that TRL's loop puts into the queue; and the loop."""
    loop = loop_of(reward_funcs=[given_reward], **changes)
    samples = asyncio.run(loop._score_group(group_of(rewards, rows)))
    return [(int(sample.input_ids[-1]) - 10, sample.advantage) for sample in samples], loop


class TestGroups:
    @pytest.mark.parametrize("name", ["median-mad", "median", "mean-std-plus1", "pods", "rloo", "quantile-0.4"])
    def test_are_estimated_as_elsewhere(self, name):
        estimation = EstimatorArguments(estimator=name)
        rewards = [((7 * i) % 5) / 2 for i in range(4 + estimation.num_extra_rollouts)]
        given = torch.tensor([rewards]).double()
        advantages, keep, _ = estimate(given, name, 4)
        found = sorted((rewards[i], advantage) for i, advantage in scored(rewards, estimation=estimation)[0])
        expected = sorted(zip(given[keep].tolist(), advantages[keep].tolist(), strict=True))
        assert [each[0] for each in found] == [each[0] for each in expected]
        assert [each[1] for each in found] == pytest.approx([each[1] for each in expected])

    def test_lose_any_of_equal_rollouts_whichever_ended_first(self):
        """TRL's groups are in the order in which rollouts ended: the first is short."""
        torch.manual_seed(0)
        estimation = EstimatorArguments(estimator="mean-std-plus1")
        kept = [[i for i, _ in scored([1.0, 1.0, 1.0, 0.0, 0.0], estimation=estimation)[0]] for _ in range(30)]
        assert {({*range(5)} - {*each}).pop() for each in kept} == {0, 1, 2}

    def test_lose_an_unscorable_rollout_first(self):
        samples, _ = scored([0.0, 1.0, None, 2.0, 3.0])
        assert [rollout for rollout, _ in samples] == [0, 1, 3, 4]

    def test_of_a_rollout_with_several_rows_all_are_kept_or_dropped(self):
        samples, _ = scored([0.0, 1.0, 2.0, 3.0, 4.0], rows=[2, 1, 3, 1, 2])
        assert [rollout for rollout, _ in samples] == [0, 0, 1, 3, 4, 4]
        assert len(set(samples)) == 4

    def test_count_a_rollout_without_a_token_to_train_on(self):
        """Its reward moves the median, though there is no row of it."""
        samples, _ = scored([0.0, 1.0, 2.0, 3.0, 4.0], rows=[1, 1, 1, 1, 0])
        assert [rollout for rollout, _ in samples] == [0, 1, 3]
        assert scored([0.0, 1.0, 2.0, 3.0, 4.0])[0][:3] == samples

    @pytest.mark.parametrize("rewards", [[1.0] * 5, [None] * 5])
    def test_without_a_signal_are_trained_on_as_with_trl(self, rewards):
        samples, _ = scored(rewards)
        assert len(samples) == 4 and not any(advantage for _, advantage in samples)

    def test_have_bounded_advantages_where_a_bound_is_given(self):
        samples, _ = scored([0.0, 1.0, 2.0, 3.0, 9.0], estimation=EstimatorArguments("median-mad", max_advantage=1.5))
        assert max(advantage for _, advantage in samples) == 1.5

    def test_log_all_rollouts_drawn(self):
        _, loop = scored([0.0, 1.0, 2.0, 3.0, 9.0])
        assert loop._metrics_queue.get_nowait()["drawn/reward"] == 3.0


@contextmanager
def running(loop):
    """TRL's generate and score loops, in a thread."""
    thread = Thread(target=loop.run)
    thread.start()
    try:
        yield
    finally:
        loop._loop.call_soon_threadsafe(loop._stop_event.set)
        thread.join(30)
        assert not thread.is_alive()


SOURCES = {
    "text": ({}, False),
    "tools": ({"tools": [add]}, True),
    "environment": ({"environment_factory": Environment, "reward_funcs": []}, True),
}


@pytest.mark.parametrize(("given", "calls"), SOURCES.values(), ids=SOURCES)
def test_the_loop_leaves_the_dropped_rollout_out(given, calls):
    """With a server that answers 0 to 4 in turn, by way of a tool where there is one: the pivot is the 2."""
    with serving(calls) as url:
        loop = loop_of(url=url, **given)
        with running(loop):
            samples = [loop.rollout_buffer.get(timeout=60) for _ in range(12)]
    for group in loop.groups[:3]:
        rewards = torch.tensor([digit_reward(group.completions)]).double()
        advantages, keep, _ = estimate(rewards, "median-mad", 4, mad_zero="std")
        assert sorted(rewards[0].tolist()) == [0, 1, 2, 3, 4] and rewards[~keep].tolist() == [2]
        assert group.tool_call_counts == [int(calls)] * 5
        found = [each for each in samples if each.group_id == group.group_id]
        assert [each.advantage for each in found] == advantages[keep].tolist()
        rows = [row for row, kept in zip(group.completions_sequences, keep[0].tolist(), strict=True) if kept]
        assert [list(each.input_ids) for each in found] == [list(row.input_ids) for (row,) in rows]


def mean_of_0_and_2(rewards):
    """The batch's mean; other rewards are refused."""
    if not ((rewards == 0) | (rewards == 2)).all():
        raise ValueError("rewards should be 0 or 2")
    return batch_mean(rewards)


class TestWhatIsAccepted:
    @pytest.mark.parametrize("name", ["median-mad", "median", "mean-std", "rloo", "pods"])
    def test_an_estimator_of_one_group(self, name, tmp_path):
        assert MCAsyncGRPOConfig(str(tmp_path), use_cpu=True, estimator=name).estimator == name


class TestWhatIsRefused:
    @pytest.mark.parametrize("name", ["batch-std", "reinforce++", "batch-mean", "james-stein", "of-0-and-2"])
    def test_an_estimator_that_compares_groups(self, name, tmp_path, monkeypatch):
        monkeypatch.setitem(ESTIMATORS, "of-0-and-2", Estimator(mean_of_0_and_2))
        with pytest.raises(ValueError, match=f"estimator '{name.replace('+', '[+]')}' compares the groups of a batch"):
            MCAsyncGRPOConfig(str(tmp_path), use_cpu=True, estimator=name)

    def test_arguments_of_trl_and_a_worker(self):
        with pytest.raises(TypeError, match=r"needs args=MCAsyncGRPOConfig\(\.\.\.\), not NoneType"):
            MCAsyncGRPOTrainer(model="unused")
        with pytest.raises(TypeError, match="makes its rollout_worker itself"):
            MCAsyncGRPOTrainer(model="unused", rollout_worker=object())

    def test_arguments_of_trl_in_their_place(self, tmp_path):
        with pytest.raises(TypeError, match="not AsyncGRPOConfig"):
            MCAsyncGRPOTrainer("unused", digit_reward, AsyncGRPOConfig(str(tmp_path), use_cpu=True))

    def test_a_worker_in_its_place(self, tmp_path):
        args = MCAsyncGRPOConfig(str(tmp_path), use_cpu=True)
        names = list(signature(AsyncGRPOTrainer.__init__).parameters)[1:]
        given = [args if name == "args" else None for name in names[: names.index("rollout_worker")]]
        with pytest.raises(TypeError, match="makes its rollout_worker itself"):
            MCAsyncGRPOTrainer(*given, object())

    def test_an_unknown_estimator(self, tmp_path):
        with pytest.raises(ValueError, match="unknown estimator 'medain'"):
            MCAsyncGRPOConfig(str(tmp_path), use_cpu=True, estimator="medain")

    def test_a_trl_that_has_moved_it(self, monkeypatch):
        """As 1.18 did. The message of a package that is not installed names the extra: `test_wheel.py`."""
        monkeypatch.delitem(sys.modules, "mcgrpo.trainer.async_grpo")
        monkeypatch.setitem(sys.modules, "trl.experimental.async_grpo.async_rollout_worker", None)
        with pytest.raises(ModuleNotFoundError, match=r"MCAsyncGRPOConfig needs a version of TRL .*docs/engines\.md"):
            mcgrpo.trainer.MCAsyncGRPOConfig  # noqa: B018


@pytest.mark.slow
def test_a_worker_runs_it_in_a_process_of_its_own(monkeypatch):
    """TRL asks whether vLLM is installed here; only the server needs it."""
    monkeypatch.setattr(async_rollout_worker, "is_vllm_available", lambda: True)
    with serving() as url:
        given = {"model_name": "none", "dataset": Dataset.from_list(QUESTIONS), "reward_funcs": [digit_reward]}
        if Version(trl.__version__) >= Version("1.13"):
            given["eos_token_ids"] = [chat_tokenizer().eos_token_id]
        worker = MCRolloutWorker(
            **given,
            processing_class=chat_tokenizer(),
            num_generations=4,
            estimation=MEDIAN,
            max_inflight_tasks=5,
            vllm_server_url=url,
        )
        worker.start()
        try:
            samples = [worker.rollout_buffer.get(timeout=120) for _ in range(4)]
        finally:
            worker.stop()
    assert {sample.group_id for sample in samples} == {0}
    assert not any("It is 2" in sample.completion[-1]["content"] for sample in samples)
