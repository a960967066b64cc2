"""A rough estimate of the bytes on disk that a study takes.

Completions count with their full length, 4 bytes a token: an upper bound. Weights are fp32. While it runs, a training
needs room for two checkpoints (one complete, one being written; three if it keeps the best) and for its weights. A
checkpoint holds weights and AdamW's two moments, and a gathered copy of the weights if they are sharded. A download is
that of the models, in bf16.
"""

from mcgrpo.commands.forecast.sizes import Sizes
from mcgrpo.records import Run
from mcgrpo.study.plan import Config, PlannedRun, benchmarks, grading
from mcgrpo.study.settings import evaluation, selects_checkpoint

TOKEN_BYTES = 4
ROW_BYTES, GRADE_BYTES = 400, 120
"""Bytes of a completion beside its text (ids, hash, gold), and of one grade."""
STEP_BYTES = 5500
"""Bytes of an optimizer step in metrics.jsonl and in MLflow's store (`mcgrpo.tracking.series`)."""
WEIGHT_BYTES, DOWNLOAD_BYTES = 4, 2
CHECKPOINT_BYTES = {"none": 12, "zero3": 16, "fsdp": 16}
"""Bytes of a parameter in a checkpoint, by `sharding`."""


def to_download(sizes: Sizes) -> int | None:
    """Bytes of the models that are to be fetched from the hub; None if the size of one is unknown."""
    parameters = [sizes.models[name].parameters for kind, name in sizes.hub if kind == "models"]
    return sum(parameters) * DOWNLOAD_BYTES if all(parameters) else None


def while_training(run: Run, sizes: Sizes) -> int | None:
    """Bytes that a training needs while it runs; None if the size of its model is unknown."""
    checkpoints = (3 if selects_checkpoint(run) else 2) * CHECKPOINT_BYTES[run.training.get("sharding", "none")]
    return (checkpoints + WEIGHT_BYTES) * sizes.models[run.model].parameters or None


def kept(config: Config, entry: PlannedRun, steps: int | None, sizes: Sizes) -> int | None:
    """Bytes that a run leaves: metrics, completions, grades, and weights with `keep_models`; None if unknown."""
    total = STEP_BYTES * (steps or 0)
    if config.get("keep_models") and entry.run.training:
        if not sizes.models[entry.run.model].parameters:
            return None
        total += WEIGHT_BYTES * sizes.models[entry.run.model].parameters
    for benchmark, role in benchmarks(config, entry.run.setting).items():
        if role in entry.roles:
            if (rows := sizes.rows[benchmark].get("test")) is None:
                return None
            settings = evaluation(config, benchmark)
            total += rows * (1 + settings["samples"]) * _row_bytes(config, settings)
    if flips := entry.flips:
        total += flips["prompts"] * flips["rollouts"] * _row_bytes(config, evaluation(config, flips["benchmark"]))
    return total


def _row_bytes(config: Config, settings: Config) -> int:
    return ROW_BYTES + TOKEN_BYTES * settings["max_new_tokens"] + GRADE_BYTES * len(grading(config))
