"""The table of `make test-trl-own` tells every test's outcome."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from trl_own import outcomes

LISTED = "test_warning_raised_all_rewards_none"


def test_a_failure_is_a_failure_unless_it_is_trls_too_or_listed():
    theirs = {"test_a": "passed", "test_b": "failed", "test_c": "passed", LISTED: "passed", "not run": "passed"}
    ours = {"test_a": "passed", "test_b": "failed", "test_c": "failed", LISTED: "failed"}
    run = outcomes.sort("median-mad", ours, theirs)
    assert run["failed"] == ["test_c", "not run"]
    assert (run["failed with TRL too"], run["different on purpose"]) == (["test_b"], [LISTED])
    printed = outcomes.table({"TRL": outcomes.sort("trl", theirs, theirs), "ours": run})
    assert "| ours | 1 | 1 | 1 | 0 | 2 |" in printed and LISTED in printed and "passed with mcgrpo" not in printed


def test_what_fails_with_trl_alone_is_named():
    theirs = {"test_a": "failed", "test_b": "failed", "test_c": "passed"}
    ours = {"test_a": "failed", "test_b": "passed", "test_c": "passed"}
    both = {name: outcomes.sort(name, each, theirs) for name, each in (("trl", theirs), ("median-mad", ours))}
    assert outcomes.table(both).endswith("- Failed with TRL, passed with mcgrpo: `test_b`.")
