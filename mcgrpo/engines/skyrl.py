"""The estimators in SkyRL, registered when this module is imported, and its trainer without the dropped rollouts.

Each name of `ESTIMATORS` becomes `trainer.algorithm.advantage_estimator=mcgrpo:NAME`, with
`generator.n_samples_per_prompt` = G + the extra rollouts. SkyRL's own trainer gives a dropped row an advantage of 0,
but leaves it in the denominators and in the KL term; `WithoutDropped` leaves it out. docs/engines.md.
"""

from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from skyrl.backends.skyrl_train.utils import ppo_utils
from skyrl.backends.skyrl_train.utils.ppo_utils import AdvantageEstimatorRegistry
from torch import Tensor

from mcgrpo.estimators import ESTIMATORS, get_estimator
from mcgrpo.estimators.rows import estimate_rows, estimate_tokens, kept_generations, over_tokens

PREFIX = "mcgrpo:"


def compute_advantage(
    token_level_rewards: Tensor, response_mask: Tensor, index: Any, *, estimator: str, options: dict[str, Any], **_: Any
) -> tuple[Tensor, Tensor]:
    """SkyRL's signature of an advantage estimator: (rows, tokens) -> advantages and returns, (rows, tokens) each.

    Args:
        token_level_rewards: their sum is the reward of a row, NaN for one that could not be scored.
        response_mask: 1 for the tokens of the completion.
        index: the uid of each row's prompt; G + the extra rollouts is the size of the largest group.
        estimator: a name that `get_estimator` knows.
        options: other keyword arguments of `estimate`.
    """
    advantages, _ = estimate_tokens(token_level_rewards, response_mask, list(index), estimator, **options)
    return advantages, advantages


def register(name: str, estimator: str, **options: Any) -> None:
    """Make an estimator, with keyword arguments of `estimate`, SkyRL's `mcgrpo:{name}`.

    Raises:
        ValueError: for an unknown estimator, or a name that is taken.
    """
    get_estimator(estimator)
    AdvantageEstimatorRegistry.register(PREFIX + name, partial(compute_advantage, estimator=estimator, options=options))


for _name in ESTIMATORS:
    register(_name, _name)


class WithoutDropped:
    """Mixin for SkyRL's trainers: dropped rollouts are out of log-probabilities, loss, denominators and KL.

    The only changes: `convert_to_training_input` is given the kept rollouts, with `n_samples_per_prompt` = G, and
    `compute_advantages_and_returns` the advantages that were estimated for them.

    Raises:
        ValueError: for an `advantage_estimator` that is not ours, for `use_kl_in_reward`, as advantages are computed
            before the KL is, and for `step_wise_trajectories`.
    """

    def __init__(self, cfg: Any, *args: Any, **kwargs: Any):
        algorithm = cfg.trainer.algorithm
        if not algorithm.advantage_estimator.startswith(PREFIX):
            raise ValueError(f"advantage_estimator {algorithm.advantage_estimator!r} should be one of {PREFIX}*")
        if algorithm.use_kl_in_reward or cfg.generator.step_wise_trajectories:
            raise ValueError(
                "use_kl_in_reward and step_wise_trajectories change rewards or rows after rows are dropped"
            )
        super().__init__(cfg, *args, **kwargs)
        self._kept_advantages = torch.zeros(0)

    def convert_to_training_input(self, generator_output: dict[str, Any], uids: list[str]) -> Any:
        """SkyRL's method, for the kept rollouts."""
        name = self.cfg.trainer.algorithm.advantage_estimator
        settings = AdvantageEstimatorRegistry.get(name).keywords
        estimator, options = settings["estimator"], settings["options"]
        drawn = self.cfg.generator.n_samples_per_prompt
        num_generations = kept_generations(estimator, drawn, options.get("extra_rollouts"))
        advantages, keep, diagnostics = estimate_rows(
            torch.tensor([sum(rewards) for rewards in generator_output["rewards"]], dtype=torch.float),
            uids,
            estimator,
            num_generations,
            **options,
        )
        self.all_metrics.update({name: value.item() for name, value in diagnostics.items()})
        self._kept_advantages = advantages[keep]
        rows = keep.nonzero().flatten().tolist()
        kept = {
            field: [values[row] for row in rows] if isinstance(values, list) and len(values) == len(uids) else values
            for field, values in generator_output.items()
        }
        with patch.object(self.cfg.generator, "n_samples_per_prompt", num_generations):
            return super().convert_to_training_input(kept, [uids[row] for row in rows])

    def compute_advantages_and_returns(self, data: Any) -> Any:
        """SkyRL's method, with the advantages of the kept rollouts; its padding comes after them."""

        def known(response_mask: Tensor, **_: Any) -> tuple[Tensor, Tensor]:
            padding = len(response_mask) - len(self._kept_advantages)
            advantages = torch.nn.functional.pad(self._kept_advantages, (0, padding))
            per_token = over_tokens(advantages, response_mask)
            return per_token, per_token

        with patch.object(ppo_utils, "compute_advantages_and_returns", known):
            return super().compute_advantages_and_returns(data)
