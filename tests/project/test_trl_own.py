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
    assert "| ours | 1 | 1 | 1 | 0 | 2 |" in outcomes.table({"ours": run})
    assert LISTED in outcomes.table({"ours": run})
