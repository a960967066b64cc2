"""Jobs on pretended GPUs."""

import pytest

from mcgrpo.launch import gpus


def test_jobs_that_run_at_once_have_gpus_of_their_own_and_a_third_waits(machine):
    first, second = machine.start(1), machine.start(1)
    assert {first.devices(), second.devices()} == {"a", "b"}
    third = machine.start(1)
    assert third.waits()
    freed = second.devices()
    second.kill()
    assert third.devices() == freed


def test_who_waits_for_two_holds_none(machine):
    machine.start(1).devices()
    both = machine.start(2)
    assert both.waits()
    assert machine.start(1).devices() in ("a", "b")


def test_those_of_cuda_visible_devices_alone_are_used(machine):
    machine.start(1, CUDA_VISIBLE_DEVICES="a").devices()
    assert machine.start(1, CUDA_VISIBLE_DEVICES="a").waits()
    assert machine.start(1, CUDA_VISIBLE_DEVICES="b").devices() == "b"


@pytest.mark.parametrize(
    ("args", "env", "message"),
    [
        (["--gpus", "3", "json.tool"], {}, "error: 3 GPUs wanted, this machine has 2\n"),
        (["--gpus", "2", "json.tool"], {"CUDA_VISIBLE_DEVICES": "b"},
         "error: 2 GPUs wanted, CUDA_VISIBLE_DEVICES=b leaves 1\n"),
        (["--gpus", "1", "json.tool"], {"MCGRPO_DEVICES": ""}, "error: 1 GPU wanted, this machine has 0\n"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_refused_at_once(machine, args, env, message):
    done = machine.run(*args, **env)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_a_machine_without_a_driver_has_none(machine, monkeypatch):
    monkeypatch.delenv("MCGRPO_DEVICES", raising=False)
    pynvml = pytest.importorskip("pynvml")

    def no_driver():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", no_driver)
    assert gpus.gpus() == {}


def test_a_driver_that_does_not_answer_is_told_and_a_lost_gpu_leaves_the_others(monkeypatch, capsys):
    monkeypatch.delenv("MCGRPO_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    pynvml = pytest.importorskip("pynvml")

    def fail(code):
        raise pynvml.NVMLError(code)

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: fail(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH))
    assert gpus.gpus() == {} and "GPUs are not seen: RM has detected an NVML/RM version" in capsys.readouterr().err
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 3)
    monkeypatch.setattr(
        pynvml, "nvmlDeviceGetHandleByIndex", lambda n: n if n != 1 else fail(pynvml.NVML_ERROR_GPU_IS_LOST)
    )
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUUID", "GPU-{}".format)
    assert gpus.gpus() == {"0": "GPU-0", "2": "GPU-2"}


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, {"0": "GPU-x", "1": "GPU-y"}),
        ("1", {"1": "GPU-y"}),
        ("GPU-y,0", {"GPU-y": "GPU-y", "0": "GPU-x"}),
        ("1,-1,0", {"1": "GPU-y"}),
        ("", {}),
        ("NoDevFiles", {}),
    ],
)
def test_a_gpu_is_locked_by_its_uuid_and_named_as_it_is_visible(monkeypatch, visible, expected):
    monkeypatch.delenv("MCGRPO_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    pynvml = pytest.importorskip("pynvml")
    uuids = ["GPU-x", "GPU-y"]
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlShutdown", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: len(uuids))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUUID", uuids.__getitem__)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus.gpus() == expected
