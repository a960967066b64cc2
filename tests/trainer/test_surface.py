"""What the trainer overrides of TRL: a change is named before anything is computed with it."""

import re
import tomllib
from pathlib import Path

import pytest
import trl
from packaging.requirements import Requirement
from packaging.version import Version
from tiny_training import SETTINGS, Ours, dataset, digits_reward, trainer_of
from trl import GRPOTrainer

from mcgrpo import MCGRPOConfig, MCGRPOTrainer
from mcgrpo.trainer.surface import TRL_VERSIONS, check_batch, check_trl

ROOT = Path(__file__).parents[2]


class TestVersions:
    @pytest.mark.parametrize("version", ["1.9.1", "1.17.0", "2.0.0.dev0"])
    def test_an_unknown_one_is_named(self, version, monkeypatch):
        monkeypatch.setattr(trl, "__version__", version)
        with pytest.warns(
            UserWarning, match=rf"TRL {re.escape(version)} is installed.* tested with trl>=1\.9\.2,<1\.17"
        ):
            check_trl()

    @pytest.mark.filterwarnings("error")
    def test_of_a_known_one_nothing_is_said(self):
        check_trl()

    def test_no_upper_bound_refuses_a_newer_one(self):
        """On the day that it comes; math-verify alone is pinned."""
        needs = [
            Requirement(each)
            for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][
                "train"
            ]
        ]
        bounded = {each.name for each in needs if any(one.operator != ">=" for one in each.specifier)}
        assert bounded == {"math-verify"}

    def test_those_that_are_required_are_those_that_are_tested(self):
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        (wanted,) = (Requirement(each).specifier for each in extras["train"] if Requirement(each).name == "trl")
        tested = re.search(r"^TRLS = (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
        assert f"trl{TRL_VERSIONS.partition(',')[0]}" in extras["train"]
        (newest,) = (each.removeprefix("trl==") for each in extras["workflow"] if each.startswith("trl=="))
        assert len(tested) > 2 and all(wanted.contains(each) for each in [*tested, newest])
        assert max(map(Version, tested)) < Version(newest), "a study trains with the newest, as `make test` does"


class TestMethods:
    def test_a_parameter_with_a_default_is_none_of_our_business(self):
        class Changed(GRPOTrainer):
            def _generate(self, prompts, images=None, **more):
                pass

        check_trl(Changed)

    def test_one_that_is_missing_is_named(self):
        with pytest.raises(RuntimeError, match=r"TRL .*: object has no method _calculate_rewards\. Install"):
            check_trl(object)

    def test_a_loss_that_passes_them_by_is_named(self):
        """As where unsloth has replaced TRL's trainer: compact updates would not be rescaled."""

        class Replaced(GRPOTrainer):
            def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
                return inputs["advantages"].sum()

        with pytest.raises(RuntimeError, match=r"Replaced\.compute_loss of test_surface does not call _compute_loss"):
            check_trl(Replaced)

    @pytest.mark.parametrize(
        ("changed", "parameters"),
        [(lambda self, model: None, "model"), (lambda self, model, inputs, spans: None, "model, inputs, spans")],
    )
    def test_one_with_others_is_named_before_a_model_is_loaded(self, changed, parameters, tmp_path, monkeypatch):
        monkeypatch.setattr(GRPOTrainer, "_compute_loss", changed)
        message = rf"GRPOTrainer\._compute_loss takes \({parameters}\), not \(model, inputs\)"
        with pytest.raises(RuntimeError, match=message):
            MCGRPOTrainer("unused", digits_reward, MCGRPOConfig(str(tmp_path), **SETTINGS), dataset())


class TestBatches:
    def test_a_key_that_is_missing_is_named(self):
        with pytest.raises(RuntimeError, match=r"a batch has no advantages, completion_ids, .*, prompt_mask"):
            check_batch({"num_items_in_batch": None})

    def test_one_that_trl_adds_is_named_before_an_update(self, tmp_path, monkeypatch):
        theirs = GRPOTrainer._generate_and_score_completions
        monkeypatch.setattr(
            GRPOTrainer, "_generate_and_score_completions", lambda self, inputs: theirs(self, inputs) | {"spans": None}
        )
        trainer = trainer_of(Ours, tmp_path)
        with pytest.raises(RuntimeError, match="does not know a batch's spans"):
            trainer.train()
        assert not trainer.losses


def test_ligers_loss_of_older_versions_is_refused_with_compact_updates(tmp_path, monkeypatch):
    monkeypatch.setattr(GRPOTrainer, "compute_liger_loss", None, raising=False)
    args = MCGRPOConfig(str(tmp_path), **SETTINGS)
    args.use_liger_kernel = True
    with pytest.raises(ValueError, match=r"set compact_updates=False, or install TRL 1\.14 or later"):
        MCGRPOTrainer("unused", digits_reward, args, dataset())


@pytest.mark.law
@pytest.mark.skipif(Version(trl.__version__) >= Version("1.11"), reason="TRL's loop can be replaced")
def test_asynchronous_grpo_is_refused_where_trls_loop_cannot_be_replaced():
    from mcgrpo.trainer import MCAsyncGRPOTrainer

    with pytest.raises(RuntimeError, match=r"asynchronous GRPO needs TRL 1\.11 or later"):
        MCAsyncGRPOTrainer(model="unused")
