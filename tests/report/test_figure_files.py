import json
import subprocess
import sys

import pytest
from synthetic import BOTH, cell, curves, gains_frame, paired, point, signal_points, study

from mcgrpo.report.catalogue import FIGURES
from mcgrpo.report.figures import main

WHERE = (
    {},
    {"role": "out", "benchmark": "far"},
    {"role": "flips", "measure": "mean/oracle-mean/strict/k2/exact"},
    {"variant": "composite"},
    {"variant": "flip-0.1"},
    {"variant": "released"},
)
"""A cell of every figure."""


def files_of(folder, cells=()):
    gains_frame(folder, cells)
    names = ("summary", "gains", "curves", "signal_curves")
    return [part for name in names for part in (f"--{name.replace('_', '-')}", str(folder / f"{name}.csv"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_command_writes_the_same_bytes_again(tmp_path, frame, curve_frame, signal_frame, name):
    frame(map(paired, study(("toy_a",))))
    signal_frame(signal_points())
    curve_frame(curves(("toy_a",), BOTH, steps=3))
    arguments = [*files_of(tmp_path, map(paired, study(("toy_a",)))), "--output"]
    for folder in "ab":
        main([name, *arguments, str(tmp_path / folder / name)])
    for suffix, magic in (("pdf", b"%PDF"), ("png", b"\x89PNG")):
        first, second = ((tmp_path / folder / f"{name}.{suffix}").read_bytes() for folder in "ab")
        assert first == second and first.startswith(magic)
    assert b"CreationDate" not in (tmp_path / "a" / f"{name}.pdf").read_bytes()


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("rows", ["none", "missing"])
def test_a_figure_with_nothing_to_show_says_so(tmp_path, capsys, frame, curve_frame, signal_frame, name, rows):
    signal_frame([])
    missing = [cell("grpo", 2, None, **where) for where in WHERE]
    frame(missing if rows == "missing" else [])
    curve_frame([point("grpo", 2, 0, 1, seconds=[None] * 4, reward=None, accuracy=None)] if rows == "missing" else [])
    files = files_of(tmp_path)
    main([name, *files, "--output", str(tmp_path / "figure")])
    assert capsys.readouterr().err.startswith(f"warning: {name}: nothing to show: no ")
    assert (tmp_path / "figure.png").is_file()


def test_the_missing_source_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["rewards", "--summary", "summary.csv", "--output", str(tmp_path / "figure")])
    assert "rewards is drawn from --curves" in capsys.readouterr().err


@pytest.mark.slow
def test_the_package_runs_as_a_module_and_imports_no_training_library(tmp_path, curve_frame):
    curve_frame(curves(("toy_a",), BOTH, steps=3))
    arguments = ["figures", "rewards", "--curves", str(tmp_path / "curves.csv"), "--output", str(tmp_path / "rewards")]
    code = (
        f"import json, runpy, sys; sys.argv = {arguments!r}; runpy.run_module('mcgrpo.report.figures', "
        "run_name='__main__', alter_sys=True); print(json.dumps(sorted(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert (tmp_path / "rewards.pdf").exists()
    assert not {"torch", "transformers", "trl", "datasets", "mlflow"} & set(json.loads(output))
