"""What every plan of a study computes of the code, once for all that are forked from a process that has it."""

import re
from pathlib import Path

from mcgrpo.study import check, fit, plan  # noqa: F401
from mcgrpo.study.fingerprint import fingerprint

RULES = Path(__file__).parents[2] / "workflow/rules"
STAGE = re.compile(r'"(mcgrpo\.[\w.]+)"')

for rules in RULES.glob("*.smk"):
    for stage in STAGE.findall(rules.read_text()):
        fingerprint(stage)
