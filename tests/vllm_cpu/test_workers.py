"""An engine of two workers, as for two GPUs: they are spawned, and draw what transformers draws."""

import multiprocessing
import os
import re
from pathlib import Path

import psutil
import pytest
from tiny_training import model_folder

from mcgrpo.generate.engines import load

SETTINGS = {"temperature": 1.0, "top_p": 0.9, "max_new_tokens": 8, "backend": "vllm"}


@pytest.fixture(scope="module")
def engine():
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "0|1"  # else each worker needs a NUMA node
    return load(model_folder(), SETTINGS | {"vllm_tensor_parallel_size": 2})


def stack(pid):
    """The end of a process's stack: by chance for each program that starts, of a forked process that of its parent."""
    return re.search(r"-(\w+) .*\[stack\]", Path(f"/proc/{pid}/maps").read_text())[1]


def test_each_gpu_has_a_worker_that_is_not_forked(engine):
    children = psutil.Process().children(recursive=True)
    workers = [child.pid for child in children if "resource_tracker" not in str(child.cmdline())]
    assert len(workers) == 3  # one that schedules, and two
    assert len({stack(pid) for pid in (os.getpid(), *workers)}) == 4
    with multiprocessing.get_context("fork").Pool(1) as forked:
        assert forked.apply(stack, ["self"]) == stack("self")


def test_greedy_completions_are_those_of_transformers(engine):
    prompts = engine.tokenizer(["Sam has 3 cards.", "2"])["input_ids"]
    reference = load(model_folder(), SETTINGS | {"backend": "transformers"})
    batches = [(prompts, "greedy", 0)]
    assert engine.complete(batches, SETTINGS) == reference.complete(batches, SETTINGS)
