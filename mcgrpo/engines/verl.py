"""The estimators in verl: a plugin that verl loads by itself, an entry point of the group `verl.plugins`.

Each name of `ESTIMATORS` becomes `algorithm.adv_estimator=mcgrpo:NAME`, with `rollout.n` = G + the extra rollouts and
the keyword arguments of `estimate` under `+algorithm.mcgrpo`. verl's own trainers give a dropped row an advantage of 0,
but leave it in the denominators and in the KL term; `mcgrpo.engines.verl_trainers` leave it out. docs/engines.md.
"""

from functools import partial
from typing import Any

from omegaconf import DictConfig, OmegaConf
from torch import Tensor
from verl.trainer.ppo.core_algos import register_adv_est

from mcgrpo.estimators import ESTIMATORS
from mcgrpo.estimators.rows import estimate_tokens, kept_generations

PREFIX = "mcgrpo:"


def settings(algorithm: Any) -> dict[str, Any]:
    """The keyword arguments of `estimate` in `algorithm.mcgrpo`."""
    return dict((algorithm.get("mcgrpo") if algorithm is not None else None) or {})


def compute_advantage(
    token_level_rewards: Tensor,
    response_mask: Tensor,
    index: Any,
    config: Any = None,
    *,
    estimator: str,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """verl's signature of an advantage estimator: (rows, tokens) -> advantages and returns, (rows, tokens) each.

    Args:
        token_level_rewards: their sum is the reward of a row, NaN for one that could not be scored.
        response_mask: 1 for the tokens in the loss; a row without one (verl's padding) is no rollout.
        index: the uid of each row's prompt.
        config: verl's `algorithm`; `rollout.n` is read beside it. Without it, G + 1 is the size of the largest group.
        estimator: a name in `ESTIMATORS`.
    """
    options = settings(config)
    drawn = OmegaConf.select(config, "..actor_rollout_ref.rollout.n") if isinstance(config, DictConfig) else None
    num_generations = None if drawn is None else kept_generations(estimator, drawn, options.get("extra_rollouts"))
    advantages, _ = estimate_tokens(
        token_level_rewards, response_mask, list(index), estimator, num_generations, **options
    )
    return advantages, advantages


for _name in ESTIMATORS:
    register_adv_est(PREFIX + _name)(partial(compute_advantage, estimator=_name))
