import os

import pytest

from mcgrpo.launch.devices import DeviceError, devices

LISTING = """\
GPU 0: NVIDIA H200 (UUID: GPU-5d2a7c11-0000-0000-0000-000000000000)
GPU 1: NVIDIA H200 (UUID: GPU-5d2a9f22-0000-0000-0000-000000000000)
GPU 2: NVIDIA A100 (UUID: GPU-e81b0c33-0000-0000-0000-000000000000)
"""
DIVIDED = """\
GPU 0: NVIDIA H200 (UUID: GPU-5d2a7c11-0000-0000-0000-000000000000)
  MIG 3g.71gb     Device  0: (UUID: MIG-c6d4f1ef-0000-0000-0000-000000000000)
  MIG 3g.71gb     Device  1: (UUID: MIG-cba663e8-0000-0000-0000-000000000000)
GPU 1: NVIDIA H200 (UUID: GPU-5d2a9f22-0000-0000-0000-000000000000)
"""


@pytest.fixture
def listed(monkeypatch, tmp_path):
    """A machine whose nvidia-smi lists what a test says, and which GPUs CUDA_VISIBLE_DEVICES leaves of it."""

    def visible(value: str | None, listing: str = LISTING) -> list[str]:
        script = tmp_path / "nvidia-smi"
        script.write_text(f"#!/bin/sh\n[ \"$*\" = -L ] || exit 9\ncat <<'end'\n{listing}end\n")
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.delenv("MCGRPO_DEVICES", raising=False)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if value is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        return [f"{each.visible} {each.uuid[:12]}" for each in devices()]

    return visible


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["0 GPU-5d2a7c11", "1 GPU-5d2a9f22", "2 GPU-e81b0c33"]),
        ("2, 0", ["2 GPU-e81b0c33", "0 GPU-5d2a7c11"]),
        ("GPU-e81b0c33-0000-0000-0000-000000000000", ["GPU-e81b0c33-0000-0000-0000-000000000000 GPU-e81b0c33"]),
        ("GPU-e8,GPU-5d2a9", ["GPU-e8 GPU-e81b0c33", "GPU-5d2a9 GPU-5d2a9f22"]),
        ("1,-1,0", ["1 GPU-5d2a9f22"]),
        ("", []),
        ("NoDevFiles", []),
    ],
)
def test_devices_are_those_that_cuda_would_show(listed, value, expected):
    assert listed(value) == expected


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("0,7", "7 names no device"),
        ("GPU-5d2a", "GPU-5d2a names several devices"),
        ("0,GPU-5d2a7", "GPU-5d2a7 names a device twice"),
        ("MIG-c6d4", "MIG-c6d4 names no device"),
    ],
)
def test_a_name_that_cuda_would_not_take_is_refused(listed, value, fault):
    with pytest.raises(DeviceError, match=f"CUDA_VISIBLE_DEVICES={value}: {fault} of this machine: 0 .NVIDIA H200"):
        listed(value)


def test_a_divided_gpu_counts_as_its_parts(listed):
    parts = [f"MIG-{start}-0000-0000-0000-000000000000 MIG-{start}" for start in ("c6d4f1ef", "cba663e8")]
    assert listed(None, DIVIDED) == [*parts, "1 GPU-5d2a9f22"]
    assert listed("MIG-cb,1", DIVIDED) == ["MIG-cb MIG-cba663e8", "1 GPU-5d2a9f22"]
    assert devices()[0].name == "NVIDIA H200 MIG 3g.71gb     Device  1"


def test_one_device_under_two_names_is_one_lock(machine, listed):
    listed(None)
    del machine.env["MCGRPO_DEVICES"]
    machine.env["PATH"] = os.environ["PATH"]
    machine.start(1, CUDA_VISIBLE_DEVICES="1").devices()
    assert machine.start(1, CUDA_VISIBLE_DEVICES="GPU-5d2a9").waits()


def test_nvidia_smi_that_fails_is_told(machine):
    script = machine.folder / "nvidia-smi"
    script.write_text("#!/bin/sh\necho 'Driver/library version mismatch'; exit 18\n")
    script.chmod(0o755)
    del machine.env["MCGRPO_DEVICES"]
    done = machine.run("1", "echo", "ran", PATH=f"{machine.folder}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: nvidia-smi -L failed (18): Driver/library version mismatch\n"
