"""What would spoil a training in silence, seen in the diagnostics of its generation batches."""

import warnings
from collections.abc import Mapping

from mcgrpo.config import MCGRPOConfig
from mcgrpo.estimators import get_estimator

UNSCORED_BATCHES = 3
"""Generation batches in a row, without a rollout that could be scored, that end a training."""


class Watch:
    """Looks at every generation batch of a training.

    Args:
        args: of the training.
        warns: whether this process is the one that warns; all of them raise, so that none is left waiting.
    """

    def __init__(self, args: MCGRPOConfig, warns: bool = True):
        self.args = args
        self.unscored = UNSCORED_BATCHES - 1  # the first batch of a training says that rewards do not work at all
        self.warns = warns and args.mad_zero == "epsilon" and args.max_advantage is None

    def look(self, values: Mapping[str, float]) -> None:
        """Look at the values of `mcgrpo.diagnostics.diagnose`.

        Warns once: where the scale is 0 in most of the groups whose rewards differ, and nothing takes its place.

        Raises:
            ValueError: where no rollout could be scored in the first batch, or in three in a row.
        """
        self.unscored = self.unscored + 1 if values["drawn/frac_unscorable"] == 1 else 0
        if self.unscored >= UNSCORED_BATCHES:
            raise ValueError(
                "no rollout of the first generation batch, or of the last three, could be scored: every reward is None "
                "or NaN, and the model does not move"
            )
        if self.warns and _is_zero_in_most(values):
            self.warns = False
            self._warn(values)

    def _warn(self, values: Mapping[str, float]) -> None:
        epsilon = self.args.advantage_epsilon
        epsilon = get_estimator(self.args.estimator).epsilon if epsilon is None else epsilon
        warnings.warn(
            f"the scale of estimator {self.args.estimator!r} is 0 in most groups whose rewards differ, as the MAD is "
            f"where most rewards of a group are equal: their advantages are deviations / {epsilon:g} (here up to "
            f"{values['advantage/abs_max']:g}). Set mad_zero='std', 'mean_absolute_deviation' or 'unit' to divide by "
            "something else, or max_advantage to bound them: docs/mad-zero.md",
            stacklevel=2,
        )


def _is_zero_in_most(values: Mapping[str, float]) -> bool:
    """Whether the scale is 0 in more than half of the groups whose rewards differ."""
    differ = 1 - values["drawn/frac_reward_zero_std"]
    return values.get("advantage/frac_scale_zero_signal", 0.0) > differ / 2
