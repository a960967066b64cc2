"""MCGRPOConfig: TRL's `GRPOConfig` with an advantage estimator."""

import warnings
from dataclasses import dataclass, field
from typing import Any, cast

from trl import GRPOConfig

from mcgrpo.estimators import MadZero, check_options, get_estimator
from mcgrpo.estimators.statistics import median
from mcgrpo.trainer.flips import FlipRule, check_flips

SCALED = {"none": "mean", "batch": "batch-std"}
"""TRL's `scale_rewards` -> the estimator that it is; `group`, TRL's default, leaves the choice to `estimator`."""


@dataclass
class EstimatorArguments:
    """How rewards become advantages: fields of `MCGRPOConfig`, which describes them, and `MCAsyncGRPOConfig`."""

    estimator: str = field(default="median-mad", metadata={"help": "Advantage estimator; see mcgrpo.estimators."})
    extra_rollouts: int | None = field(
        default=None, metadata={"help": "Rollouts drawn beside num_generations; None for the estimator's own."}
    )
    advantage_epsilon: float | None = field(
        default=None, metadata={"help": "Added to the estimator's scale; None for the estimator's own."}
    )
    mad_zero: MadZero = field(
        default="epsilon", metadata={"help": "The divisor of a group whose scale is 0 though its rewards differ."}
    )
    max_advantage: float | None = field(default=None, metadata={"help": "Bound on |A|; None for no bound."})

    @property
    def num_extra_rollouts(self) -> int:
        """Rollouts drawn for each prompt beside `num_generations`: `extra_rollouts`, or the estimator's own number."""
        return get_estimator(self.estimator).extra_rollouts if self.extra_rollouts is None else self.extra_rollouts

    @property
    def options(self) -> dict[str, Any]:
        """Those of `compute_estimate`."""
        return {"extra_rollouts": self.extra_rollouts, "epsilon": self.advantage_epsilon, "mad_zero": self.mad_zero}

    def check_estimator(self, num_generations: int) -> None:
        """Refuse invalid arguments; warns if the median of a group of this size is no rollout's reward.

        Raises:
            ValueError: for an unknown estimator, or an option that is invalid or that it does not use.
        """
        centre, extra = get_estimator(self.estimator).centre, self.num_extra_rollouts
        check_options(estimator=self.estimator, max_advantage=self.max_advantage, **self.options)
        if centre is median and extra and (num_generations + extra) % 2 == 0:
            warnings.warn(
                f"num_generations={num_generations} with {extra} extra makes groups of even size, in which no "
                "rollout is the median: the dropped rollout has an advantage. Choose an even num_generations.",
                stacklevel=4,
            )


@dataclass
class MCGRPOConfig(EstimatorArguments, GRPOConfig):
    """Configuration class for `MCGRPOTrainer`: the parameters of TRL's `GRPOConfig`, and these.

    Args:
        estimator: a name in `mcgrpo.estimators.ESTIMATORS`, or `module:attribute` for your own. None for
            `median-mad`, or for what `scale_rewards` means in TRL: `mean` for `none` or False, `batch-std` for `batch`.
        extra_rollouts: drawn for each prompt beside the `num_generations` that are trained on; None for the
            estimator's own number.
        advantage_epsilon: added to the scale, in units of the reward; None for the estimator's own. Refused for an
            estimator without a scale.
        mad_zero: the divisor of a group whose scale is 0 though its rewards differ (docs/mad-zero.md): `epsilon` (the
            paper), `std`, `mean_absolute_deviation`, `unit` or `skip`. Refused for an estimator whose scale is not 0
            then, such as a standard deviation.
        max_advantage: advantages are clamped to [-max_advantage, max_advantage]; None for no bound.
        compact_updates: leave rows that do not change the gradient out of log-probabilities and updates, and pack the
            others by length, wherever the gradient stays the same up to rounding (`mcgrpo.trainer.compact`). TRL's
            metrics of updates (entropy, clip_ratio) then describe the computed rows only, and kl, a mean over
            micro-batches, depends on the packing. Without it, TRL's estimators give TRL's losses bit for bit.
        advantage_flip_rate: share of advantages that are negated on purpose, to see what wrong signs do to training
            (MC-GRPO, section 2); 0 for none.
        advantage_flip_rule: `bernoulli` negates each advantage with that probability; `exact` negates that share of the
            kept rows of every group, which must be a whole number of rows. See `mcgrpo.trainer.flips.draw_flips`.

    Raises:
        ValueError: for an invalid value, naming the field; for an option that the estimator does not use.
    """

    estimator: str = field(
        default=cast("str", None),
        metadata={"help": "Advantage estimator; None for median-mad, or that of scale_rewards."},
    )
    advantage_flip_rate: float = field(
        default=0.0, metadata={"help": "Share of advantages to negate on purpose, in [0, 1]."}
    )
    advantage_flip_rule: FlipRule = field(
        default="bernoulli",
        metadata={"help": "Negate each advantage with that probability, or exactly that share of every group."},
    )

    compact_updates: bool = field(
        default=True,
        metadata={"help": "Leave out rows that do not change the gradient, pack the others by length."},
    )

    def __post_init__(self):
        super().__post_init__()
        self._choose_estimator()
        self.check_estimator(self.num_generations)
        check_flips(self.advantage_flip_rate, self.advantage_flip_rule, self.num_generations)
        rows = self.per_device_train_batch_size * self.steps_per_generation
        if rows % self.num_generations:
            raise ValueError(
                f"num_generations={self.num_generations} does not divide the {rows} rows that each process "
                f"generates at a time (per_device_train_batch_size={self.per_device_train_batch_size} x "
                f"steps_per_generation={self.steps_per_generation}): a group would straddle two processes"
            )

    def _choose_estimator(self) -> None:
        """Set the estimator that TRL's arguments mean, with a warning; refuse those that no estimator means."""
        if self.multi_objective_aggregation != "sum_then_normalize":
            raise ValueError(
                f"multi_objective_aggregation={self.multi_objective_aggregation!r} scales the rewards of each function "
                "apart, which no estimator does: leave it out, and set reward_weights to weigh the functions"
            )
        if self.scale_rewards == "group":
            self.estimator = self.estimator or "median-mad"
            return
        meant = SCALED.get(self.scale_rewards)
        if meant is None or self.estimator not in (None, meant):
            raise ValueError(
                f"scale_rewards={self.scale_rewards!r} does not go with estimator={self.estimator!r}: leave "
                "scale_rewards out, the estimator scales" + (f" ({meant!r} is what it means in TRL)" if meant else "")
            )
        if self.estimator is None:
            self.estimator = meant
            warnings.warn(
                f"scale_rewards={self.scale_rewards!r} is the estimator {meant!r}, a mean without an extra rollout: "
                "leave scale_rewards out to train with 'median-mad'",
                stacklevel=4,
            )
