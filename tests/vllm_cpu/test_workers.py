"""An engine of two workers, as for two GPUs: they are spawned, and what they draw is what one draws."""

import psutil
import pytest
from tiny_training import model_folder

from mcgrpo.generate.engines import load

SETTINGS = {"temperature": 1.0, "top_p": 0.9, "max_new_tokens": 8, "backend": "vllm"}
SPAWNED = "VLLM_WORKER_MULTIPROC_METHOD"


@pytest.fixture(scope="module")
def engine():
    return load(model_folder(), SETTINGS | {"vllm_tensor_parallel_size": 2})


def test_each_gpu_has_a_spawned_worker(engine):
    """A spawned process began with what this one had set by then, a forked one with what this one began with."""
    workers = [
        child for child in psutil.Process().children(recursive=True) if "resource_tracker" not in str(child.cmdline())
    ]
    assert len(workers) >= 2 and {worker.environ().get(SPAWNED) for worker in workers} == {"spawn"}


def test_greedy_completions_are_those_of_transformers(engine):
    prompts = engine.tokenizer(["Sam has 3 cards.", "2"])["input_ids"]
    reference = load(model_folder(), SETTINGS | {"backend": "transformers"})
    assert engine.complete(prompts, "greedy", 0, SETTINGS) == reference.complete(prompts, "greedy", 0, SETTINGS)
