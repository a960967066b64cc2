"""`make gpu-check` on a CPU, at a tiny shape."""

import csv
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
import bench.gpu.__main__
from bench.gpu import checks, two_gpus
from bench.gpu.__main__ import PARTS, main
from bench.gpu.checks import ROOT

pytestmark = pytest.mark.slow
LAW = "tests/trainer/test_trainer.py::TestMeanIsTRL::test_bit_for_bit[bf16]"


@pytest.fixture(scope="module", autouse=True)
def environment():
    """As it was, afterwards."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Its rows, with one law and one training by two processes."""
    file = tmp_path_factory.mktemp("gpu") / "gpu.csv"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.chdir(ROOT)
        patch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
        patch.setattr(two_gpus, "CASES", {"fsdp": two_gpus.CASES["fsdp"]})
        patch.setattr(sys, "argv", ["bench.gpu", "--device", "cpu", "--csv", str(file), "--laws", LAW])
        main()
    assert ended.value.code == 0
    with file.open(encoding="utf-8") as rows:
        return list(csv.DictReader(rows))


def test_every_part_has_rows_and_a_step_is_timed_for_every_trainer(table):
    assert tuple(dict.fromkeys(row["part"] for row in table)) == PARTS
    assert [row for row in table if row["status"] == "failed"] == []
    (vllm,) = [row for row in table if row["part"] == "vllm"]  # with vLLM: tests/vllm_cpu/test_steps.py
    assert (vllm["status"], vllm["note"]) == ("skipped", "vLLM is not installed")
    (law,) = [row for row in table if row["part"] == "laws"]
    assert law["case"].endswith("TestMeanIsTRL::test_bit_for_bit[bf16]") and float(law["value"]) > 0
    (two,) = [row for row in table if row["part"] == "two-gpus"]
    assert two["case"] == "fsdp" and float(two["value"]) > 0
    seconds = {row["case"]: float(row["value"]) for row in table if row["quantity"] == "seconds a step"}
    assert len(seconds) == 6 and "TRL, mean, G, G=4, beta=0.04" in seconds and all(seconds.values())


def test_of_several_gpus_the_first_is_checked_and_a_part_that_fails_does_not_end_the_others(tmp_path, monkeypatch):
    """TRL refuses to train on several in one process."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    monkeypatch.setattr(bench.gpu.__main__, "estimators", lambda device: (1 / 0 for _ in "x"))
    file = tmp_path / "gpu.csv"
    parts = ["--parts", "estimators", "machine"]
    monkeypatch.setattr(sys, "argv", ["bench.gpu", "--device", "cpu", "--csv", str(file), *parts])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1 and os.environ["CUDA_VISIBLE_DEVICES"] == "3"
    first, *rest = csv.DictReader(file.open(encoding="utf-8"))
    assert (first["status"], first["note"]) == ("failed", "ZeroDivisionError: division by zero")
    assert {row["part"] for row in rest} == {"machine"}


def test_two_gpus_need_two_gpus():
    (row,) = two_gpus.two_gpus("cuda", ["0"], lambda: 60.0)
    assert (row.status, row.note) == ("skipped", "needs two GPUs, 1 may be used")


def test_a_training_on_two_gpus_that_fails_says_why_and_none_starts_without_time(monkeypatch):
    assert [row.status for row in two_gpus.two_gpus("cpu", [], lambda: 0.0)] == ["skipped"] * 2
    monkeypatch.setattr(two_gpus, "CASES", {"refused": {"attn_implementation": "flash_attention_2"}})
    (row,) = two_gpus.two_gpus("cpu", [], lambda: 600.0)
    assert row.status == "failed" and "the package flash-attn is not installed" in row.note


def test_a_law_that_is_broken_fails(tmp_path):
    (tmp_path / "test_broken.py").write_text("def test_sums():\n    assert 1 + 1 == 3, 'sums are wrong'\n")
    (row,) = checks.laws("cpu", [str(tmp_path / "test_broken.py")], 60)
    assert row.status == "failed" and "assert (1 + 1) == 3" in row.note
