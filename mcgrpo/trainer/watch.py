"""Faults that would spoil a training silently, found in the diagnostics of its generation batches."""

import warnings
from collections.abc import Mapping

from mcgrpo.estimators import get_estimator
from mcgrpo.trainer.config import MCGRPOConfig

UNSCORED_BATCHES = 3
"""Consecutive generation batches without a scorable rollout that stop a training."""
WARNED_BATCHES = 3
"""Consecutive generation batches that are warned of: cut off and without a difference of rewards, or masked."""
MASKED_SHARE = 0.1
"""Share of vLLM's importance sampling ratios that are masked in each of those batches, over which it warns."""
ENOUGH_GROUPS = 6
"""Groups whose rewards differ that are needed for a warning about most of them."""


class Watch:
    """Checks every generation batch of a training.

    Args:
        args: the trainer's arguments.
        warns: whether this process may warn; all processes raise, so that none is left waiting.
    """

    def __init__(self, args: MCGRPOConfig, warns: bool = True):
        self.args = args
        self.unscored: int | None = None
        self.differ = self.scale_zero = self.largest = 0.0
        self.cut_off = self.masked = 0
        self.warns_of_cuts = self.warns_of_masks = warns
        self.warns = warns and args.mad_zero == "epsilon" and args.max_advantage is None

    def look(self, values: Mapping[str, float], groups: int, step: int, is_cut_off: bool = False) -> None:
        """Check a generation batch.

        Warns once, if the scale is 0 in most of the groups whose rewards differ and `mad_zero` does not replace it; and
        once, if all completions of three batches in a row are cut off and no group has two different rewards.

        Args:
            values: of `mcgrpo.estimators.diagnostics.diagnose`.
            groups: number of groups in the batch.
            step: optimizer steps before it, including those before a checkpoint.
            is_cut_off: whether all its completions ended at `max_completion_length`.

        Raises:
            ValueError: if no rollout could be scored in the first batch of a training, or in three in a row.
        """
        if self.unscored is None:  # in the first batch of a training one is enough: rewards do not work at all
            self.unscored = 0 if step else UNSCORED_BATCHES - 1
        self.unscored = self.unscored + 1 if values["drawn/frac_unscorable"] == 1 else 0
        if self.unscored >= UNSCORED_BATCHES:
            raise ValueError(
                "no rollout of the first generation batch, or of the last three, could be scored: every reward is None "
                "or NaN, and nothing is learned"
            )
        self._look_at_ends(is_cut_off and values["drawn/frac_reward_differ"] == 0)
        self.differ += groups * values["drawn/frac_reward_differ"]
        self.scale_zero += groups * values.get("advantage/frac_scale_zero_signal", 0.0)
        self.largest = max(self.largest, values["advantage/abs_max"])
        if self.warns and self.differ >= ENOUGH_GROUPS and self.scale_zero > self.differ / 2:
            self.warns = False
            self._warn()

    def look_at_ratios(self, share: float) -> None:
        """Warn once, if in three batches in a row more than a tenth of vLLM's importance sampling ratios are masked."""
        self.masked = self.masked + 1 if share > MASKED_SHARE else 0
        if self.warns_of_masks and self.masked == WARNED_BATCHES:
            self.warns_of_masks = False
            warnings.warn(
                f"{share:.0%} of the rows (or tokens) computed for the last generation batch add nothing to the policy "
                "gradient: their probability under the model, over that under vLLM, is out of the bounds of "
                f"vllm_importance_sampling_mode={self.args.vllm_importance_sampling_mode!r}, which masks them. "
                "'sequence_truncate' and 'token_truncate' bound that ratio instead",
                stacklevel=2,
            )

    def _look_at_ends(self, is_lost: bool) -> None:
        self.cut_off = self.cut_off + 1 if is_lost else 0
        if self.warns_of_cuts and self.cut_off == WARNED_BATCHES:
            self.warns_of_cuts = False
            warnings.warn(
                f"every completion of the last {WARNED_BATCHES} generation batches was cut off at "
                f"max_completion_length={self.args.max_completion_length}, and no group has two different rewards: "
                "nothing is learned. Raise max_completion_length, or check that prompt and end tokens let the model "
                "end",
                stacklevel=2,
            )

    def _warn(self) -> None:
        epsilon = self.args.advantage_epsilon
        epsilon = get_estimator(self.args.estimator).epsilon if epsilon is None else epsilon
        warnings.warn(
            f"the scale of estimator {self.args.estimator!r} is 0 in most groups whose rewards differ (the MAD is 0 as "
            f"soon as most rewards of a group are equal): their advantages are deviations / {epsilon:g}, here up to "
            f"{self.largest:g}. mad_zero='std', 'mean_absolute_deviation' or 'unit' divides by something else, and "
            "max_advantage bounds them: docs/mad-zero.md",
            stacklevel=2,
        )
