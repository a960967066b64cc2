"""What became of each test with each trainer, as a table."""

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

BEGIN, END = "<!-- trl-own: begin (made by `make test-trl-own`) -->", "<!-- trl-own: end -->"
COLUMNS = ("passed", "different on purpose", "failed with TRL too", "skipped", "failed")
ON_PURPOSE = {
    "test_reward_metric_reflects_reward_weights[normalize_then_sum]": (
        ("mean-std", "median-mad"),
        "`multi_objective_aggregation` is refused: no estimator scales the rewards of each function apart.",
    ),
    "test_train_normalize_then_sum_aggregation": (("mean-std", "median-mad"), "The same."),
    "test_warning_raised_all_rewards_none": (
        ("mean-std", "median-mad"),
        "A training whose rewards are all None stops with an error, where TRL warns and trains on nothing.",
    ),
    "test_liger_kernel_with_peft_lm_head_raises": (
        ("mean-std", "median-mad"),
        "Without Liger's package that is the error, before a model is loaded; with it, TRL's about the adapter is.",
    ),
    "test_train_with_environment_owned_reward": (
        ("median-mad",),
        "It expects the mean of `rewards/*` over the three rollouts drawn; ours is over the two of the update.",
    ),
    "test_train_with_multiple_environments": (
        ("median-mad",),
        "Its four rows are G = 2 of two prompts; with an extra rollout G would be 1, which TRL refuses.",
    ),
}
"""Tests that pass with TRL and not with these trainers, and why."""

Outcomes = Mapping[str, str]


def read(report: Path) -> dict[str, str]:
    """Test -> `passed`, `failed` or `skipped`, of a report in JUnit's format."""
    names = {"failure": "failed", "error": "failed", "skipped": "skipped"}
    return {
        case.attrib["name"]: next((names[part.tag] for part in case if part.tag in names), "passed")
        for case in ElementTree.parse(report).iter("testcase")
    }


def sort(trainer: str, ours: Outcomes, theirs: Outcomes) -> dict[str, list[str]]:
    """Column of the table -> tests."""
    sorted_into: dict[str, list[str]] = {column: [] for column in COLUMNS}
    for test in {**theirs, **ours}:
        outcome = ours.get(test, "failed")  # a test that was not run has failed
        if outcome == "failed" and theirs.get(test) == "failed":
            outcome = "failed with TRL too"
        elif outcome == "failed" and trainer in ON_PURPOSE.get(test, ((), ""))[0]:
            outcome = "different on purpose"
        sorted_into[outcome].append(test)
    return sorted_into


def passed_by_ours_alone(runs: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """Tests that fail with TRL, the first of the trainers, and pass with each of the others."""
    theirs, *ours = runs.values()
    return [test for test in theirs["failed with TRL too"] if all(test in run["passed"] for run in ours)]


def table(runs: Mapping[str, Mapping[str, list[str]]]) -> str:
    """A row for each trainer, a sentence for each test that differs on purpose, and what fails with TRL alone.

    Args:
        runs: what `sort` makes of each trainer's tests, TRL's first.
    """
    lines = [("trainer", *COLUMNS), ["---"] * (1 + len(COLUMNS))]
    lines += [(name, *(str(len(run[column])) for column in COLUMNS)) for name, run in runs.items()]
    reasons = [
        f"- `{test}` ({' and '.join(trainers)}): {reason}"
        for test, (trainers, reason) in ON_PURPOSE.items()
        if any(test in run["different on purpose"] for run in runs.values())
    ]
    if alone := passed_by_ours_alone(runs):
        reasons.append(f"- Failed with TRL, passed with mcgrpo: {', '.join(f'`{test}`' for test in alone)}.")
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", *reasons])


def write_into(document: Path, text: str) -> None:
    """Write it between the document's marks.

    Raises:
        ValueError: if the document lacks a mark.
    """
    before, begin, rest = document.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{document} lacks {BEGIN if not begin else END}")
    document.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
