"""A rough estimate of the bytes on disk that a study takes.

Completions are counted at their full length, 4 bytes a token: an upper bound. Weights are fp32. A training needs the
room of two checkpoints, one whole and one being written, of three where it keeps the best on the test split, and of the
weights at its end; it gives that of the checkpoints back. A checkpoint is weights and AdamW's two moments; where
processes share them, a whole copy of the weights beside.
"""

from typing import Any

from mcgrpo.commands.forecast.sizes import Sizes
from mcgrpo.records import Run
from mcgrpo.study.plan import Config, Planned, benchmarks, grading
from mcgrpo.tracking import DEFAULT_STORE
from mcgrpo.train.arguments import selects

TOKEN_BYTES = 4
ROW_BYTES = 400
"""Of a row of completions beside the text (ids, hash, gold)."""
GRADE_BYTES = 120
STEP_BYTES = 2500
"""Of a row of metrics.jsonl."""
STORE_STEP_BYTES = 10 * 300
"""Of a step in MLflow's SQLite store: its metrics, three quarters of each for indexes (`mcgrpo.tracking.series`)."""
WEIGHT_BYTES = 4
CHECKPOINT_BYTES = {"none": 12, "zero3": 16, "fsdp": 16}


def weights(run: Run, sizes: Sizes) -> int | None:
    """Bytes of a trained model; None where the size of the model is not known."""
    return WEIGHT_BYTES * sizes.models[run.model].parameters or None


def while_training(run: Run, sizes: Sizes) -> int | None:
    """Bytes that a training needs while it lasts: its checkpoints, and the weights at its end."""
    checkpoints = 3 if selects(run) else 2
    each = CHECKPOINT_BYTES[run.training.get("sharding", "none")]
    return (checkpoints * each + WEIGHT_BYTES) * sizes.models[run.model].parameters or None


def kept(config: Config, entry: Planned, steps: int | None, sizes: Sizes) -> int | None:
    """Bytes that a trained run leaves: its texts, its steps in MLflow's store, and weights where they are kept."""
    parts = [texts(config, entry, steps, sizes), weights(entry.run, sizes) if config.get("keep_models") else 0]
    parts.append(store(config, steps))
    return None if None in parts else sum(parts)


def store(config: Config, steps: int | None) -> int:
    """Bytes of a run's steps in MLflow's store, where that is a file of this machine."""
    uri = config.get("tracking_uri", DEFAULT_STORE)
    return STORE_STEP_BYTES * (steps or 0) if uri and uri.startswith("sqlite") else 0


def to_download(sizes: Sizes) -> int | None:
    """Bytes of the models and data sets that the hub has to send; None where it does not say."""
    parts = [answer.download for answer in sizes.hub.values()]
    return None if None in parts else sum(parts)


def texts(config: Config, entry: Planned, steps: int | None, sizes: Sizes) -> int | None:
    """Bytes of a run's metrics, completions and grades; None where a benchmark's size is not known."""
    total = STEP_BYTES * (steps or 0)
    for benchmark, role in benchmarks(config, entry.run.setting).items():
        if role in entry.roles:
            rows = sizes.rows[benchmark].get("test")
            if rows is None:
                return None
            evaluation = {**config["evaluation"], **config["evaluation"].get("by_benchmark", {}).get(benchmark, {})}
            total += rows * (1 + evaluation["samples"]) * _row(config, evaluation["max_new_tokens"])
    return total + _rollouts(config, entry.flips)


def _row(config: Config, tokens: int) -> int:
    return ROW_BYTES + TOKEN_BYTES * tokens + GRADE_BYTES * len(grading(config))


def _rollouts(config: Config, flips: dict[str, Any] | None) -> int:
    if not flips:
        return 0
    evaluation = {**config["evaluation"], **config["evaluation"].get("by_benchmark", {}).get(flips["benchmark"], {})}
    return flips["prompts"] * flips["rollouts"] * _row(config, evaluation["max_new_tokens"])
