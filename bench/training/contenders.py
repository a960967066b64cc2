"""The trainers that are compared; all run the same model, prompts, seeds and settings, and are timed by one clock."""

from dataclasses import dataclass
from typing import Any

import torch
from trl import GRPOConfig, GRPOTrainer

from mcgrpo import MCGRPOConfig, MCGRPOTrainer, estimate
from mcgrpo.trainer.timing import PhaseTimer


class Timed(GRPOTrainer):
    """TRL's trainer with the phases of a step timed as `MCGRPOTrainer` times its own."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._timer = PhaseTimer(self._metrics["train"])
        self.add_callback(self._timer)

    def _generate(self, prompts: list) -> Any:
        with self._timer.phase("generation"):
            return super()._generate(prompts)

    def _calculate_rewards(self, *args: Any) -> Any:
        with self._timer.phase("rewards"):
            return super()._calculate_rewards(*args)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        with self._timer.phase("logprobs"):
            return super()._generate_and_score_completions(inputs)


class DropsAfterwards(Timed):
    """The release's way, less its faults: all of G + 1 rows are prepared, then the pivots are dropped."""

    def _calculate_rewards(self, *args: Any) -> Any:
        self._rewards = super()._calculate_rewards(*args)
        return self._rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        groups = self._rewards.sum(dim=1).view(-1, self.num_generations)
        advantages, keep, _ = estimate(groups, "median-mad", self.num_generations - 1)
        rows = keep.flatten()
        kept = {
            name: value[rows] if torch.is_tensor(value) and value.dim() else value for name, value in output.items()
        }
        return kept | {"advantages": advantages[keep]}


@dataclass(frozen=True)
class Contender:
    """`extra` rollouts a prompt are part of TRL's own groups (ours draw them beside those they are given)."""

    label: str
    trainer: type[GRPOTrainer]
    config: type[GRPOConfig]
    extra: int = 0
    settings: tuple[tuple[str, Any], ...] = ()


def ours(label: str, estimator: str, compact: bool) -> Contender:
    """A contender of ours."""
    settings = (("estimator", estimator), ("compact_updates", compact))
    return Contender(label, MCGRPOTrainer, MCGRPOConfig, settings=settings)


CONTENDERS: dict[str, Contender] = {
    "trl": Contender("TRL, mean, G", Timed, GRPOConfig),
    "trl-plus1": Contender("TRL, mean, G+1", Timed, GRPOConfig, extra=1),
    "drop-afterwards": Contender("median, G+1 rows prepared, then dropped", DropsAfterwards, GRPOConfig, extra=1),
    "mean": ours("mcgrpo, mean", "mean-std", False),
    "mean-compact": ours("mcgrpo, mean, compact", "mean-std", True),
    "mc": ours("mcgrpo, median", "median-mad", False),
    "mc-compact": ours("mcgrpo, median, compact", "median-mad", True),
}
