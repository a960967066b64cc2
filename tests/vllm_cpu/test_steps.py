"""What `make gpu-check` times with vLLM, at a tiny shape."""

import gc
import sys
from pathlib import Path

import pytest
from transformers import PreTrainedModel
from trl.generation import vllm_generation
from vllm import LLM

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench.gpu import vllm_steps
from bench.gpu.table import RATIO, SECONDS, as_markdown
from bench.training.measure import CONTENDERS


def living(kind):
    gc.collect()
    gc.unfreeze()  # what is frozen is neither collected nor counted
    return sum(isinstance(each, kind) for each in gc.get_objects())


@pytest.fixture(scope="module")
def found():
    """The rows, and how many engines and trained models are alive after each training."""
    rows, alive = [], set()
    for row in vllm_steps.steps_with_vllm("cpu", lambda: 60.0, (2,), 2):
        rows.append(row)
        if row.quantity == SECONDS and "round" in row.case:
            alive.add((living(LLM), living(PreTrainedModel)))
    return rows, alive


def test_every_contender_is_timed_in_both_rounds_and_compared_with_trl(found):
    rows, _ = found
    assert {row.status for row in rows} == {"ok", "skipped"}
    assert {row.note for row in rows if row.status == "skipped"} == {"no GPU"}
    rounds = [row.case for row in rows if row.quantity == SECONDS and "round" in row.case]
    labels = [contender.label for contender in CONTENDERS.values()]
    assert rounds == [
        *(f"{label}, G=2, round 1" for label in labels),
        *(f"{label}, G=2, round 2" for label in reversed(labels)),
    ]
    assert {row.case: row.note.count(".") for row in rows if row.quantity == RATIO} == {
        f"{label}, G=2": 2 for label in labels[1:]
    }
    measured = {row.quantity: row.value for row in rows if row.case == f"{labels[-1]}, G=2, round 1"}
    assert measured["importance sampling ratio, mean"] == pytest.approx(1, abs=0.1)  # in bf16
    assert measured["share that it masks"] == 0
    (engine,) = [row for row in rows if row.case == "engine"]
    assert engine.note.startswith("CPU, vLLM ") and engine.note in as_markdown(rows)


def test_all_draw_with_one_engine_that_keeps_no_model_of_a_training_before(found):
    assert found[1] == {(1, 0)}
    assert vllm_generation.LLM is LLM


def test_what_no_time_is_left_for_is_skipped():
    rows = list(vllm_steps.steps_with_vllm("cpu", lambda: 0.0, (2,), 2))
    assert len(rows) == 6 and {(row.status, row.note) for row in rows} == {("skipped", "no time left")}
    assert as_markdown(rows) == ""
