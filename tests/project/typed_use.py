"""The library as people use it, for mypy alone (`make lint`): nothing that they write is of the type Any."""

from collections.abc import Callable
from typing import assert_type

from datasets import Dataset
from torch import Tensor

from mcgrpo import ESTIMATORS, Estimator, MCGRPOConfig, MCGRPOTrainer, estimate, register
from mcgrpo.estimators import Signal, signal
from mcgrpo.trainer import MCAsyncGRPOConfig, MCAsyncGRPOTrainer


def train(dataset: Dataset, reward: Callable[..., list[float | None]]) -> None:
    """As in the README."""
    args = MCGRPOConfig(output_dir="out", num_generations=4, estimator="median-mad", mad_zero="std")
    assert_type(args.estimator, str)
    assert_type(args.extra_rollouts, int | None)
    assert_type(args.num_extra_rollouts, int)
    assert_type(args.learning_rate, float)
    trainer = MCGRPOTrainer(model="Qwen/Qwen3-0.6B", args=args, train_dataset=dataset, reward_funcs=reward)
    assert_type(trainer, MCGRPOTrainer)
    trainer.train(resume_from_checkpoint=True)


def train_asynchronously(dataset: Dataset, reward: Callable[..., list[float]]) -> None:
    """As in docs/drop-in.md."""
    MCAsyncGRPOTrainer(
        model="Qwen/Qwen3-0.6B", args=MCAsyncGRPOConfig(estimator="my:own"), train_dataset=dataset, reward_funcs=reward
    )


def mistakes() -> None:
    """Each is an error: were a type Any, its comment would be unused, which is an error too."""
    MCGRPOConfig(output_dir="out", num_generation=4)  # type: ignore[call-arg]
    MCGRPOConfig(output_dir="out", estimator=ESTIMATORS["median"])  # type: ignore[arg-type]
    MCGRPOConfig(output_dir="out", mad_zero="sdt")  # type: ignore[arg-type]
    MCGRPOTrainer(model="Qwen/Qwen3-0.6B", reward_func=len)  # type: ignore[call-arg]
    MCGRPOTrainer(model="Qwen/Qwen3-0.6B", args="out")  # type: ignore[arg-type]
    MCAsyncGRPOTrainer(model="Qwen/Qwen3-0.6B", reward_func=len)  # type: ignore[call-arg]
    MCAsyncGRPOConfig(mad_zero="sdt")  # type: ignore[arg-type]


def compute(rewards: Tensor, centre: Callable[[Tensor], Tensor]) -> None:
    """As in docs/estimators.md."""
    assert_type(register("own", Estimator(centre, extra_rollouts=1)), Estimator)
    assert_type(estimate(rewards, "own", 4), tuple[Tensor, Tensor, dict[str, Tensor]])
    assert_type(ESTIMATORS, dict[str, Estimator])
    assert_type(signal("median", 2, [0.0, 1.0], [[0.5, 0.5]]), Signal)
    estimate(rewards, "own", 4, mad_zero="sdt")  # type: ignore[arg-type]
