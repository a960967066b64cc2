"""The estimators of this package, by the names of their functions. Without torch: a study is planned by it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BuiltIn:
    """An `mcgrpo.estimators.Estimator`; `centre`, `scale` and `keep` are functions of modules of this package."""

    centre: str
    scale: str | None = None
    extra_rollouts: int = 0
    epsilon: float = 0.0
    source: str = ""
    keep: str = "keep.keep_largest"
    centre_of_kept: bool = False

    @property
    def uses_mad_zero(self) -> bool:
        """Whether the scale can be 0 where rewards differ, so that `mad_zero` has something to replace."""
        return self.scale is not None and self.scale not in NEVER_ZERO


_MEAN, _STD, _MEDIAN = "statistics.mean", "statistics.std", "statistics.median"
BUILT_IN: dict[str, BuiltIn] = {
    "mean-std": BuiltIn(_MEAN, _STD, 0, 1e-4, "GRPO, arXiv 2402.03300; epsilon as in TRL's GRPOTrainer"),
    "mean": BuiltIn(_MEAN, None, 0, 0.0, "Dr. GRPO, arXiv 2503.20783: no division by the standard deviation"),
    "median-mad": BuiltIn(_MEDIAN, "statistics.mad", 1, 1e-3, "MC-GRPO, Eqs. 2-4; epsilon as in the authors' release"),
    "median": BuiltIn(_MEDIAN, None, 1, 0.0, "MC-GRPO, Eq. 2 in Dr. GRPO: no normalisation (appendix A)"),
    "mean-std-plus1": BuiltIn(_MEAN, _STD, 1, 1e-4, "MC-GRPO, extra-sampling control: smallest |A| dropped"),
    "batch-std": BuiltIn(_MEAN, "scales.batch_std", 0, 1e-4, "arXiv 2508.08221; TRL's scale_rewards='batch'"),
    "rloo": BuiltIn("baselines.leave_one_out", None, 0, 0.0, "RLOO, arXiv 2402.14740"),
    "reinforce++": BuiltIn(
        _MEAN, "scales.batch_deviation", 0, 1e-4, "REINFORCE++ with a group baseline, arXiv 2501.03262"
    ),
    "quantile-0.4": BuiltIn("baselines.quantile_04", "scales.spread", 0, 1e-4, "QAE, arXiv 2509.22611, Eq. 3, K = 0.4"),
    "james-stein": BuiltIn(
        "baselines.james_stein", None, 0, 0.0, "arXiv 2511.03710, two-level leave-one-out shrinkage"
    ),
    "batch-mean": BuiltIn(
        "baselines.batch_mean", "scales.batch_std", 0, 1e-4, "REINFORCE++, arXiv 2501.03262; OpenRLHF's reinforce"
    ),
    "sign": BuiltIn("baselines.sign_baseline", None, 0, 0.0, "arXiv 2605.07689: a fixed reference, A = 2 r - 1"),
    "maxrl": BuiltIn(_MEAN, "scales.positive_mean", 0, 0.0, "MaxRL, arXiv 2602.02710"),
    "pods": BuiltIn(
        _MEAN, _STD, 8, 1e-4, "PODS, arXiv 2504.13818: GRPO on the kept rows", "keep.keep_max_variance", True
    ),
}
NEVER_ZERO = (_STD, "scales.spread", "scales.batch_std", "scales.batch_deviation", "scales.positive_mean")
"""Scales that are not 0 where rewards differ."""
