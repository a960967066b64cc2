"""The package as a wheel, installed where there is no repository."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from studies import ROOT

FOLDERS = ("mcgrpo", "snakemake_logger_plugin_mcgrpo", "config", "workflow")
FILES = ("pyproject.toml", "README.md", "LICENSE", "reports/reproduction.tex")
BUILD = "from setuptools import build_meta; import sys; print(build_meta.build_wheel(sys.argv[1]))"


def environment(python: Path) -> dict[str, str]:
    """That of a shell in which the environment is activated, and nothing of the repository is on the path."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return outside | {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}


def build(folder: Path, commit: str = "") -> Path:
    """The wheel of this code, built from a copy of the files that a release is built from, and stamped like one."""
    source = folder / "source"
    for name in FOLDERS:
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (source / "reports").mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    if commit:
        (source / "mcgrpo/shipped/commit").write_text(f"{commit}\n")
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    shutil.rmtree(source)
    return wheel


def install(wheel: Path, folder: Path, with_dependencies: bool = True, without: str | None = None) -> Path:
    """Install it in a new environment, that of the tests behind it; returns the environment's Python.

    `without` is a package of the tests that this environment has not; then the others are linked.
    """
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    shutil.unpack_archive(wheel, site, "zip")
    if without:
        for each in Path(next(path for path in sys.path if path.endswith("site-packages"))).iterdir():
            if each.suffix != ".pth" and not re.match(rf"({without}|mcgrpo)\b|__editable__", each.name):
                (site / each.name).symlink_to(each)
    elif with_dependencies:
        # Path files in a folder that a path file names are not read: that of the editable installation stays out.
        (site / "dependencies.pth").write_text(next(path for path in sys.path if path.endswith("site-packages")))
    return folder / "bin/python"
