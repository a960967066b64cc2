"""How the workflow names the files of a study to a shell."""

import re

from studies import ROOT


def test_every_path_in_a_command_is_quoted():
    """A whole study in a folder with an odd name is in tests/workflow/test_deployed.py."""
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    sharing = len(re.findall(r"shell:\s+GENERATE$", rules, re.MULTILINE))  # one command of several rules
    assert rules.count("> {log:q} 2>&1") == rules.count("shell:") - sharing + 1 > 10
    assert not re.findall(r"\{(?:input|output|log)[\w.]*\}", rules)
