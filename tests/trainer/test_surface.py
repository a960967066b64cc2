"""What the trainer overrides of TRL: a change is named before anything is computed with it."""

import re
import tomllib
from pathlib import Path

import pytest
import trl
from packaging.requirements import Requirement
from packaging.version import Version
from tiny_training import Ours, dataset, digits_reward, trainer_of
from trl import GRPOTrainer
from trl.experimental.async_grpo.async_rollout_worker import AsyncRolloutWorker

from mcgrpo import MCGRPOConfig, MCGRPOTrainer
from mcgrpo.trainer import unsupported
from mcgrpo.trainer.surface import TRL_VERSIONS, check_batch, check_trl

ROOT = Path(__file__).parents[2]
SETTINGS = {"use_cpu": True, "bf16": False, "per_device_train_batch_size": 8, "num_generations": 4}
BATCH = dict.fromkeys(
    ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages", "num_items_in_batch")
)


class TestVersions:
    @pytest.mark.parametrize("version", ["1.9.1", "1.17.0", "2.0.0.dev0"])
    def test_an_unknown_one_is_named(self, version, monkeypatch):
        monkeypatch.setattr(trl, "__version__", version)
        with pytest.warns(
            UserWarning, match=rf"TRL {re.escape(version)} is installed.* tested with trl>=1\.9\.2,<1\.17"
        ):
            check_trl()

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("version", ["1.9.2", "1.13.0", "1.16.4"])
    def test_of_a_known_one_nothing_is_said(self, version, monkeypatch):
        monkeypatch.setattr(trl, "__version__", version)
        check_trl()

    def test_those_that_are_required_are_those_that_are_tested(self):
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        (wanted,) = (Requirement(each).specifier for each in extras["train"] if Requirement(each).name == "trl")
        tested = re.search(r"^TRLS = (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
        assert f"trl{TRL_VERSIONS}" in extras["train"]
        (newest,) = (each.removeprefix("trl==") for each in extras["workflow"] if each.startswith("trl=="))
        assert len(tested) > 2 and all(wanted.contains(each) for each in [*tested, newest])
        assert max(map(Version, tested)) < Version(newest), "a study trains with the newest, as `make test` does"


class TestMethods:
    def test_a_parameter_more_is_named(self):
        class Changed(GRPOTrainer):
            def _generate(self, prompts, images):
                pass

        with pytest.raises(RuntimeError, match=r"Changed\._generate takes \(prompts, images\), not \(prompts\)"):
            check_trl(Changed)

    def test_a_parameter_with_a_default_is_none_of_our_business(self):
        class Changed(GRPOTrainer):
            def _generate(self, prompts, images=None, **more):
                pass

        check_trl(Changed)

    def test_one_that_is_missing_is_named(self):
        class Older:
            pass

        with pytest.raises(RuntimeError, match=r"TRL .*: Older has no method _calculate_rewards\. Install"):
            check_trl(Older)

    def test_a_loss_that_passes_them_by_is_named(self):
        """As where unsloth has replaced TRL's trainer: compact updates would not be rescaled."""

        class Replaced(GRPOTrainer):
            def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
                return inputs["advantages"].sum()

        with pytest.raises(RuntimeError, match=r"Replaced\.compute_loss of test_surface does not call _compute_loss"):
            check_trl(Replaced)

    def test_they_are_looked_at_before_a_model_is_loaded(self, tmp_path, monkeypatch):
        monkeypatch.setattr(GRPOTrainer, "_compute_loss", lambda self, model: None)
        with pytest.raises(RuntimeError, match=r"GRPOTrainer\._compute_loss"):
            MCGRPOTrainer(
                model="unused",
                reward_funcs=digits_reward,
                args=MCGRPOConfig(str(tmp_path), **SETTINGS),
                train_dataset=dataset(),
            )


class TestBatches:
    def test_a_key_that_is_missing_or_unknown_is_named(self):
        check_batch(BATCH)
        with pytest.raises(RuntimeError, match="a batch has no prompt_mask"):
            check_batch({name: None for name in BATCH if name != "prompt_mask"})
        with pytest.raises(RuntimeError, match="does not know a batch's router_logits"):
            check_batch(BATCH | {"router_logits": None})

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
        MCGRPOTrainer(model="unused", reward_funcs=digits_reward, args=args, train_dataset=dataset())


def test_ligers_kernels_are_refused_before_a_model_is_loaded_if_they_are_not_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(unsupported, "is_liger_kernel_available", lambda: False)
    args = MCGRPOConfig(str(tmp_path), **SETTINGS)
    args.use_liger_kernel = True
    with pytest.raises(ImportError, match="use_liger_kernel=True needs the package liger-kernel"):
        MCGRPOTrainer(model="unused", reward_funcs=digits_reward, args=args, train_dataset=dataset())


def test_continuous_batching_is_refused_where_it_would_round_the_weights(tmp_path):
    with pytest.raises(ValueError, match="bf16=True turns the fp32 weights that are trained into bf16 at the first"):
        trainer_of(Ours, tmp_path, use_transformers_continuous_batching=True, bf16=True)
    trainer = trainer_of(Ours, tmp_path, use_transformers_continuous_batching=True)
    trainer.args.bf16 = True
    unsupported.check_precision(trainer.args, trainer.model.bfloat16())


@pytest.mark.law
@pytest.mark.skipif(hasattr(AsyncRolloutWorker, "_loop_cls"), reason="TRL's loop can be replaced")
def test_asynchronous_grpo_is_refused_where_trls_loop_cannot_be_replaced():
    from mcgrpo.trainer.async_grpo import EstimatorArguments, MCRolloutWorker

    with pytest.raises(RuntimeError, match=r"asynchronous GRPO needs TRL 1\.11 or later"):
        MCRolloutWorker(num_generations=4, estimation=EstimatorArguments())
