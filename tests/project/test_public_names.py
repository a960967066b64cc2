"""Import paths and modules that people use: they outlive moves of the code behind them."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

API = Path(__file__).parents[2] / "docs/drop-in.md"
PUBLIC = {
    "mcgrpo": "ESTIMATORS Estimator MCGRPOConfig MCGRPOTrainer estimate register",
    "mcgrpo.estimators": "ESTIMATORS Estimator estimate get_estimator register signal",
    "mcgrpo.trainer": "MCAsyncGRPOConfig MCAsyncGRPOTrainer MCGRPOConfig MCGRPOTrainer",
    "mcgrpo.estimators.rows": "estimate_rows estimate_tokens over_tokens",
    "mcgrpo.engines.slime": "post_process_rewards",
    "mcgrpo.rewards": "REWARDS Task format_reward is_accurate judge reward_functions reward_of text_of",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_imported_from_their_path(module):
    assert all(getattr(import_module(module), name) is not None for name in PUBLIC[module].split())


@pytest.mark.parametrize("name", ["mcgrpo", "mcgrpo.estimators", "mcgrpo.trainer"])
def test_type_checkers_see_what_a_package_imports_on_first_use(name):
    package = import_module(name)
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    names = [alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(names) == sorted({*package.__all__} - {"__version__"})
    assert all(getattr(package, each) is not None for each in names)


def test_the_api_reference_lists_every_public_name():
    """What the page then shows is tested where the site is built."""
    listed = set(re.findall(r"^\.\. autoapi\w+:: [\w.]+\.(\w+)$", API.read_text(), re.MULTILINE))
    assert {name for names in PUBLIC.values() for name in names.split()} - listed == set()
