"""Print the section of CHANGELOG.md for a tag: `python .github/release_notes.py v0.2.0`."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(tag: str) -> str:
    """The section of the version that the tag names.

    Raises:
        SystemExit: if it is not the version of pyproject.toml, or has no section.
    """
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if tag != f"v{version}":
        sys.exit(f"tag {tag}: pyproject.toml has version {version}")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.+?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    if not section:
        sys.exit(f"CHANGELOG.md: no section '## {version}'")
    return section[1].strip()


if __name__ == "__main__":
    print(notes(*sys.argv[1:]))
