"""The parts of TRL and transformers that the trainer overrides or reads, compared with what it was written for.

A TRL outside `TRL_VERSIONS` warns. A method, an argument, an attribute or a key of a batch that is not as listed here
is an error that names it: methods and arguments before a model is loaded, attributes before training, keys before the
first update.
"""

import inspect
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import trl
from packaging.specifiers import SpecifierSet
from trl import GRPOConfig, GRPOTrainer

from mcgrpo.trainer.packing import COMPLETION_COLUMNS

TRL_VERSIONS = ">=1.9.2,<1.17"
"""Those that `mcgrpo[train]` accepts; `make test` tests the newest, `make test-trl` three older ones."""

METHODS = {
    "_calculate_rewards": ("inputs", "prompts", "completions", "completion_ids_list"),
    "_compute_loss": ("model", "inputs"),
    "_generate": ("prompts",),
    "_generate_and_score_completions": ("inputs",),
    "_get_per_token_logps_and_entropies": ("model", "input_ids", "attention_mask", "logits_to_keep", "batch_size"),
    "_get_train_sampler": ("dataset",),
    "_init_training_state": (
        "max_steps",
        "num_update_steps_per_epoch",
        "num_train_epochs",
        "resume_from_checkpoint",
        "trial",
    ),
    "_load_best_model": (),
    "_load_from_checkpoint": ("resume_from_checkpoint", "model"),
    "_load_optimizer_and_scheduler": ("checkpoint",),
    "_prepare_inputs": ("generation_batch",),
    "_save_checkpoint": ("model", "trial"),
}
"""Overridden methods of `GRPOTrainer`, with the parameters that are given by position; others have defaults."""

ARGUMENTS = (
    "delta",
    "entropy_coef",
    "epsilon_high",
    "importance_sampling_level",
    "loss_type",
    "multi_objective_aggregation",
    "off_policy_mask_threshold",
    "scale_rewards",
    "steps_per_generation",
    "top_entropy_quantile",
    "use_adaptive_entropy",
    "use_bias_correction_kl",
    "use_transformers_continuous_batching",
)
"""Of `GRPOConfig`, read by the overrides."""

ATTRIBUTES = (
    "_buffered_inputs",
    "_logs",
    "_metrics",
    "_pending_extra_logs",
    "_step",
    "aux_loss_enabled",
    "beta",
    "environment_factories",
    "environments",
    "num_generations",
    "pad_to_multiple_of",
    "reward_weights",
    "tools",
)
"""Of a `GRPOTrainer`, read or replaced by the overrides."""

REQUIRED_KEYS = {"prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages", "num_items_in_batch"}
KNOWN_KEYS = REQUIRED_KEYS | {*COMPLETION_COLUMNS}
"""Of a batch of text: rows are picked from these, and columns of padding cut off."""


def check_trl(trainer: type = GRPOTrainer, config: type = GRPOConfig) -> None:
    """Check the installed TRL before anything is loaded; warns of an unknown version.

    Raises:
        RuntimeError: naming the method whose parameters differ, or what is missing.
    """
    if not SpecifierSet(TRL_VERSIONS).contains(trl.__version__, prereleases=True):
        warnings.warn(
            f"TRL {trl.__version__} is installed, and mcgrpo was tested with trl{TRL_VERSIONS}: what it overrides may "
            "have changed, and losses with it",
            stacklevel=2,
        )
    for name, expected in METHODS.items():
        method = getattr(trainer, name, None)
        if method is None:
            raise _differs(f"{trainer.__name__} has no method {name}")
        _, *parameters = inspect.signature(method).parameters.values()
        needed = [each.name for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
        if tuple(each.name for each in parameters[: len(expected)]) != expected or not {*needed} <= {*expected}:
            raise _differs(
                f"{trainer.__name__}.{name} takes ({', '.join(map(str, parameters))}), not ({', '.join(expected)})"
            )
    if "_compute_loss" not in inspect.unwrap(trainer.compute_loss).__code__.co_names:  # as unsloth's, on a GPU
        raise _differs(f"{trainer.__name__}.compute_loss of {trainer.__module__} does not call _compute_loss")
    _check_names("GRPOConfig has no argument", ARGUMENTS, {field.name for field in fields(config)})


def check_attributes(trainer: GRPOTrainer) -> None:
    """Check a trainer that TRL has set up.

    Raises:
        RuntimeError: naming the attribute that it lacks.
    """
    _check_names("GRPOTrainer has no attribute", ATTRIBUTES, {name for name in ATTRIBUTES if hasattr(trainer, name)})


def check_batch(batch: Mapping[str, Any]) -> None:
    """Check a batch that TRL has prepared.

    Raises:
        RuntimeError: naming the key that is missing, or that nothing here knows.
    """
    _check_names("a batch has no", REQUIRED_KEYS, batch.keys())
    _check_names("the trainer does not know a batch's", batch.keys(), KNOWN_KEYS)


def _check_names(what: str, wanted: Iterable[str], present: Iterable[str]) -> None:
    if missing := sorted({*wanted} - {*present}):
        raise _differs(f"{what} {', '.join(missing)}")


def _differs(what: str) -> RuntimeError:
    return RuntimeError(f"mcgrpo does not fit TRL {trl.__version__}: {what}. Install trl{TRL_VERSIONS}")
