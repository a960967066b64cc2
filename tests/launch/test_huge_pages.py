import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
KERNEL = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
CODE = """
from pathlib import Path
from mcgrpo.launch import huge_pages

def huge():
    return int(Path("/proc/self/smaps_rollup").read_text().split("AnonHugePages:")[1].split()[0]) >> 10

memory = bytearray(range(256)) * (16 << 12)
before = huge()
huge_pages.collapse()
print(huge() - before, memory == bytearray(range(256)) * (16 << 12))
"""


@pytest.mark.skipif(
    KERNEL < (6, 1) or not ENABLED.is_file() or "[never]" in ENABLED.read_text(),
    reason="this system makes no huge pages when it is asked",
)
def test_memory_is_in_huge_pages_and_holds_what_it_held():
    """Of 16 MiB the ends may lie in pages that others share."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    mebibytes, same = done.stdout.split()
    assert int(mebibytes) >= 12 and same == "True"
