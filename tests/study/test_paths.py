"""Where the files of a study are, and how its workflow names them to a shell."""

import re

from studies import ROOT

from mcgrpo.records import PROTOCOL_SUFFIXES
from mcgrpo.study.paths import StudyFiles

FILES = StudyFiles("mini")
RUN = "toy/grpo/G2/default/seed0"
OF_A_RUN = ("completions", "grades", "rollouts", "rollout_grades", "flips")


def test_no_two_files_of_a_run_are_one():
    paths = [getattr(FILES.results, kind)(RUN, "sums") for kind in OF_A_RUN]
    paths += [FILES.results.grades(RUN, "sums", protocol) for protocol in PROTOCOL_SUFFIXES if protocol != "paper"]
    paths += [kind(RUN) for kind in (FILES.results.run, FILES.results.unfinished, FILES.results.model)]
    assert len(set(paths)) == len(paths)


def test_every_path_in_a_command_is_quoted():
    """A whole study in a folder with an odd name is in tests/workflow/test_deployed.py."""
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert rules.count("> {log:q} 2>&1") == rules.count("shell:") > 10
    assert not re.findall(r"\{(?:input|output|log)[\w.]*\}", rules)
