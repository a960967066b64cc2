"""What was lost of what a study planned, in words: trainings, rewards, answers."""

from collections import Counter
from dataclasses import dataclass, field

from mcgrpo.report.wording import count

UNGRADED = {"unparseable": "unparseable", "timeout": "timed out in grading", "error": "failed in grading"}
"""Verdicts that are neither right nor wrong, in words."""


@dataclass
class Lost:
    """Counts of what was planned, and of what is missing or could not be used.

    Args:
        planned: trainings.
        missing: of these, those not finished, by their state.
        rollouts: drawn in finished trainings.
        unscorable: of these, those without a reward.
        unmeasured: evaluations of planned runs without a score.
        completions: graded in evaluation.
        ungraded: of these, by verdict, those that are neither right nor wrong.
    """

    planned: int = 0
    missing: Counter = field(default_factory=Counter)
    rollouts: int = 0
    unscorable: int = 0
    unmeasured: int = 0
    completions: int = 0
    ungraded: Counter = field(default_factory=Counter)

    def __str__(self) -> str:
        states = ", ".join(f"{n} {state}" for state, n in sorted(self.missing.items()) if n and state)
        parts = [f"{self.missing.total()} of {count(self.planned, 'training')}" + (f" ({states})" if states else "")]
        parts += [f"{count(self.unmeasured, 'evaluation')} without a score"] if self.unmeasured else []
        parts += [f"{self.unscorable:,} of {self.rollouts:,} rollouts unscorable"] if self.rollouts else []
        if self.completions:
            told = ", ".join(f"{self.ungraded[verdict]:,} {word}" for verdict, word in UNGRADED.items())
            parts.append(f"of {self.completions:,} graded completions {told}")
        return "; ".join(parts) + "."
