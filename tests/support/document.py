"""The rule that makes the document, which is there where LaTeX is."""

import shutil

DOCUMENT = ("reproduction",) if shutil.which("latexmk") else ()
