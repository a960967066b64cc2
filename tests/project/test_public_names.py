"""Import paths and modules that people use: they outlive moves of the code behind them."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

API = Path(__file__).parents[2] / "docs/drop-in.md"
NAMES = [
    *(
        f"mcgrpo:{name}"
        for name in ("ESTIMATORS", "Estimator", "MCGRPOConfig", "MCGRPOTrainer", "estimate", "register")
    ),
    *(
        f"mcgrpo.estimators:{name}"
        for name in ("ESTIMATORS", "Estimator", "estimate", "get_estimator", "register", "signal")
    ),
    *(
        f"mcgrpo.trainer:{name}"
        for name in ("MCAsyncGRPOConfig", "MCAsyncGRPOTrainer", "MCGRPOConfig", "MCGRPOTrainer")
    ),
    *(f"mcgrpo.estimators.rows:{name}" for name in ("estimate_rows", "estimate_tokens", "over_tokens")),
    "mcgrpo.engines.slime:post_process_rewards",
    *(
        f"mcgrpo.rewards:{name}"
        for name in ("REWARDS", "format_reward", "is_accurate", "judge", "reward_functions", "reward_of", "text_of")
    ),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_imported_from_its_path(name):
    module, _, attribute = name.partition(":")
    assert getattr(import_module(module), attribute) is not None


@pytest.mark.parametrize("name", ["mcgrpo", "mcgrpo.trainer"])
def test_type_checkers_see_what_a_package_imports_on_first_use(name):
    package = import_module(name)
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    names = [alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(names) == sorted({*package.__all__} - {"__version__"})
    assert all(getattr(package, each) is not None for each in names)


def test_the_api_reference_lists_every_public_name():
    """What the page then shows is tested where the site is built."""
    listed = set(re.findall(r"^\.\. autoapi\w+:: [\w.]+\.(\w+)$", API.read_text(), re.MULTILINE))
    assert {name.partition(":")[2] for name in NAMES} - listed == set()


def test_the_grader_is_a_module_to_run():
    done = subprocess.run([sys.executable, "-m", "mcgrpo.grade", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--task" in done.stdout
