"""Let targets follow `--resources`: `snakemake --cores all --resources gpu=2 reports/tables.tex`.

Report for Snakemake (seen in 9.27): `--resources` takes `nargs="+"`, so argparse hands it the target too, and Snakemake
ends with "ValueError: dictionary update sequence element #1 has length 1; 2 is required". A word without `=` could end
the values, or `action="append"` take one each.

Until then: before Snakemake reads its command line, it imports all packages with a name like this one's, in search of
logger plugins, and this one moves such targets in `sys.argv` to the front. It does so only for a Snakefile that
names mcgrpo: other workflows are left alone.
"""

import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

# Of a logger plugin, Snakemake asks for a class with this name.
from snakemake_interface_logger_plugins.base import LogHandlerBase as LogHandler

__all__ = ["LogHandler", "targets_first"]

OPTIONS = ("--resources", "--res")
SNAKEFILES = ("Snakefile", "workflow/Snakefile")


def targets_first(words: Iterable[str]) -> list[str]:
    """The words of a command line; those without `=` that follow a value of `--resources` are moved to the front."""
    targets, others, values = [], [], -1
    for word in words:
        if word.startswith("-"):
            values = 0 if word in OPTIONS else -1
        elif values > 0 and "=" not in word:
            targets.append(word)
            continue
        elif values >= 0:
            values += 1
        others.append(word)
    return [*targets, *others]


named = [after for word, after in pairwise(sys.argv) if word in ("-s", "--snakefile")]
if any(file.is_file() and "mcgrpo" in file.read_text(errors="replace") for file in map(Path, named or SNAKEFILES)):
    sys.argv[1:] = targets_first(sys.argv[1:])
