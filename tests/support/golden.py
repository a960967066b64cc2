"""Files in tests/data/report that outputs are compared with; RENEW_GOLDEN=1 writes them anew."""

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data/report"


def golden(name, text):
    if os.environ.get("RENEW_GOLDEN"):
        (FOLDER / name).write_text(text)
    assert text == (FOLDER / name).read_text()
