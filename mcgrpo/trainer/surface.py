"""The methods of TRL and transformers that the trainer overrides, compared with what it was written for.

A TRL outside `TRL_VERSIONS` warns, and may well work. A method that is not as listed here is an error that names it
before a model is loaded, and so is a key of a batch before the first update.
"""

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import trl
from packaging.specifiers import SpecifierSet
from trl import GRPOTrainer

from mcgrpo.trainer.packing import COMPLETION_COLUMNS

TRL_VERSIONS = ">=1.9.2,<1.17"
"""Those that are tested: the newest by `make test`, three older ones by `make test-trl`; the extra takes newer ones."""

_OVERRIDDEN = {
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

REQUIRED_KEYS = {"prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages", "num_items_in_batch"}
KNOWN_KEYS = REQUIRED_KEYS | {*COMPLETION_COLUMNS}
"""Of a batch of text: rows are picked from these, and columns of padding cut off."""


def check_trl(trainer: type = GRPOTrainer) -> None:
    """Check the installed TRL before anything is loaded; warns of an unknown version.

    Raises:
        RuntimeError: naming the method that is missing, or whose parameters differ.
    """
    if not SpecifierSet(TRL_VERSIONS).contains(trl.__version__, prereleases=True):
        warnings.warn(
            f"TRL {trl.__version__} is installed, and mcgrpo was tested with trl{TRL_VERSIONS}: what it overrides may "
            "have changed, and losses with it",
            stacklevel=2,
        )
    for name, expected in _OVERRIDDEN.items():
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


def check_batch(batch: Mapping[str, Any]) -> None:
    """Check a batch that TRL has prepared.

    Raises:
        RuntimeError: naming the key that is missing, or that nothing here knows.
    """
    if missing := sorted(REQUIRED_KEYS - batch.keys()):
        raise _differs(f"a batch has no {', '.join(missing)}")
    if unknown := sorted(batch.keys() - KNOWN_KEYS):
        raise _differs(f"the trainer does not know a batch's {', '.join(unknown)}")


def _differs(what: str) -> RuntimeError:
    return RuntimeError(f"mcgrpo does not fit TRL {trl.__version__}: {what}. Install trl{TRL_VERSIONS}")
