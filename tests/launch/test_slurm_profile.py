"""The profile for SLURM names what the workflow has."""

import re

import yaml
from studies import ROOT

PROFILE = yaml.safe_load((ROOT / "workflow/profiles/slurm/config.yaml").read_text())
TEXT = "\n".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
DERIVED = dict(re.findall(r"^use rule (\w+) as (\w+)", TEXT, re.MULTILINE))
RULES = dict(re.findall(r"^rule (\w+):\n((?: .*\n|\n)*)", TEXT, re.MULTILINE))


NUMBERED = set(re.findall(r'f"(\w+_)\{place\}"', TEXT))
"""Names of rules that are made for a study, without their number."""


def test_the_profile_names_only_rules_that_there_are():
    assert {name.rstrip("0123456789") for name in PROFILE["set-resources"]} <= {*RULES, *DERIVED.values(), *NUMBERED}


def test_several_benchmarks_get_what_one_gets():
    assert {"generate_together_"} == NUMBERED
    numbers = [PROFILE["set-resources"][f"generate_together_{number}"] for number in (1, 2, 3, 4)]
    assert all(each == PROFILE["set-resources"]["generate"] for each in numbers)


def test_every_rule_with_gpus_is_one_task_on_one_node():
    with_gpus = {name for name, body in RULES.items() if re.search(r"^ +gpu=", body, re.MULTILINE)}
    with_gpus |= {derived for origin, derived in DERIVED.items() if origin in with_gpus}
    assert with_gpus == {"warm_start", "train", "generate", "rollouts"}
    assert all(
        (PROFILE["set-resources"][name]["nodes"], PROFILE["set-resources"][name]["tasks"]) == (1, 0)
        for name in with_gpus
    )
