"""The memory of a study's trainings: what `mcgrpo plan` prints, and what `mcgrpo doctor` says to cards of a size.

The GPUs are pretended ones (MCGRPO_DEVICES), their memory is named (MCGRPO_DEVICE_GIB); trainings and sizes are real.
"""

import re
from types import SimpleNamespace

import psutil
import pytest
import yaml
from studies import ROOT, changed, load

from mcgrpo.commands import doctor
from mcgrpo.commands.memory import check_host, check_memory, largest, listing, memory_of_machine, warn
from mcgrpo.launch.gpus import memory_of_gpus
from mcgrpo.study.memory import GIB
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import runs
from mcgrpo.study.read import read
from mcgrpo.study.schedule import schedule

PAPER = read([ROOT / "config/config.yaml"])
B200 = "167.6"
"""180 GB. NVML reports more."""


@pytest.fixture
def cards(monkeypatch, tmp_path):
    """Pretend to have two GPUs of a size in GiB, and a folder without models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def pretend(size, names="0,1"):
        monkeypatch.setenv("MCGRPO_DEVICES", names)
        monkeypatch.setenv("MCGRPO_DEVICE_GIB", size)

    return pretend


def found(config):
    """Status, finding and remedy of each setting."""
    return {told[1].split(":")[0]: told for told in check_memory(config)}


def unsharded(setting):
    """The paper's study with whole copies of that setting's weights on each GPU."""
    return changed(PAPER, {"settings": {setting: {"training": {"sharding": "none"}}}})


def test_two_b200_hold_the_papers_study(cards):
    cards(B200)
    checks = found(PAPER)
    assert checks.keys() == {setting for setting in PAPER["settings"] if setting != "llama-3.2-3b-math"}
    assert {status for status, *_ in checks.values()} == {"ok"}


def test_what_cards_do_not_hold_is_told_when_a_study_starts(cards, capsys):
    cards("24")
    too_large = [setting for setting, (status, *_) in found(PAPER).items() if status == "error"]
    warn(PAPER, PAPER["settings"])
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[:2] for line in told] == [["warning:", f"{setting}:"] for setting in too_large]
    assert len(told) > 1 and all("of 24.0 GiB" in line for line in told)
    warn(PAPER, too_large[:1])  # what is to be trained
    assert capsys.readouterr().err.splitlines() == told[:1]


def test_what_is_sharded_is_what_two_b200_do_not_hold_whole(cards):
    cards(B200)
    sharded = {run.setting for run, *_ in largest(PAPER) if run.training["sharding"] == "fsdp"}
    status = {setting: found(unsharded(setting))[setting][0] for setting in found(PAPER)}
    assert status["qwen2.5-7b-math"] == "error" and status["qwen3-4b-math"] == "warning"
    assert {setting for setting, each in status.items() if each != "ok"} == sharded


def test_a_remedy_is_a_change_with_which_it_fits(cards):
    """Sharding is named where it is enough, and a smaller share of vLLM where that is."""
    cards(B200)
    _, finding, remedy = found(unsharded("qwen2.5-7b-math"))["qwen2.5-7b-math"]
    assert re.search(r"about 237\.\d of 167\.6 GiB on each GPU \(qwen2\.5-7b-math/\S+\)$", finding)
    assert remedy.startswith("`sharding: fsdp` or ")
    *_, remedy = found(unsharded("qwen3-4b-math"))["qwen3-4b-math"]
    share = re.match("`vllm_gpu_memory_utilization: (0.[0-9]+)`", remedy)
    smaller = {"settings": {"qwen3-4b-math": {"training": {"vllm_gpu_memory_utilization": float(share[1])}}}}
    assert found(changed(unsharded("qwen3-4b-math"), smaller))["qwen3-4b-math"][0] == "ok"


@pytest.mark.parametrize(("use_vllm", "named"), [(True, True), (False, False)])
def test_an_adapter_is_no_remedy_where_flash_attention_would_be_given_fp32(cards, use_vllm, named):
    cards("40", "0")
    flash = {"attn_implementation": "flash_attention_2", "use_vllm": use_vllm, "stop": None}
    study = changed(read([ROOT / "config/config.yaml", ROOT / "config/one-gpu.yaml"]), {"training": flash})
    ((_, _, remedy),) = found(study).values()
    assert ("`lora:" in remedy) is named


@pytest.mark.parametrize(
    ("overlay", "size", "gpus", "settings"),
    [
        ("one-gpu", "79.6", "0", {"qwen3-1.7b-gsm8k"}),
        ("qwen2.5-0.5b", "14.7", "0", {"qwen2.5-0.5b-gsm8k"}),
        ("two-80gb", "79.2", "0,1", {run.setting for run, *_ in largest(PAPER)} - {"qwen2.5-7b-math"}),
    ],
)
def test_an_overlay_fits_the_cards_that_it_names(cards, overlay, size, gpus, settings):
    cards(size, gpus)
    config = read([ROOT / "config/config.yaml", ROOT / f"config/{overlay}.yaml"])
    assert {name: status for name, (status, *_) in found(config).items()} == dict.fromkeys(settings, "ok")


def test_two_smaller_cards_take_the_papers_batches():
    """Each of its trainings is one of the paper's, with as many optimizer steps and prompts a batch of rollouts."""

    def steps(config):
        trained = [run for run in runs(config) if run.method != UNTRAINED]
        each = {run.name: schedule(run, config["gpus"], 7500) for run in trained}
        return {name: (one.steps, one.groups, [step for step, _ in one.generations()]) for name, one in each.items()}

    ours = steps(read([ROOT / "config/config.yaml", ROOT / "config/two-80gb.yaml"]))
    assert len(ours) > 400 and ours.items() <= steps(PAPER).items()


def test_doctor_has_a_line_for_each_setting(cards, monkeypatch, capsys):
    cards("79.6")
    lines = list(check_memory(PAPER))
    assert [status for status, *_ in lines].count("error") == len(lines) == 5
    monkeypatch.setattr("sys.argv", ["mcgrpo doctor", str(ROOT / "config/gpu-small.yaml")])
    with pytest.raises(SystemExit):
        doctor.main()
    assert "warning  memory    small-qwen3: small-qwen3's sizes are not known" in capsys.readouterr().out


def test_slurm_gives_a_training_the_memory_in_which_the_largest_starts():
    """SLURM's MB are MiB."""
    profile = yaml.safe_load((ROOT / "workflow/profiles/slurm/config.yaml").read_text())
    given = profile["set-resources"]["train"]["mem_mb"] * 2**20
    needed = {run.setting: taken.host for run, taken, _ in largest(PAPER)}
    assert max(needed.values()) == needed["qwen2.5-7b-math"] > 122e9
    assert all(host <= given for host in needed.values())


def host(config):
    """Status, finding and remedy, of memory and of disk."""
    return {topic: told for status, topic, *rest in check_host(config) for told in [(status, *rest)]}


SMALL = {
    "models": {"qwen2.5-7b": {"config": {"num_hidden_layers": 1, "hidden_size": 64, "vocab_size": 100}}},
    "gpus": 1,
    "settings": {"qwen2.5-7b-math": {"training": {"sharding": "none"}}},
    "experiments": dict.fromkeys(PAPER["experiments"])
    | {"main": {"settings": ["qwen2.5-7b-math"], "methods": ["grpo"], "num_generations": [2]}},
}
"""Of the paper's study one setting on one GPU, with a model that any machine holds."""


def test_this_machine_and_its_disk_are_compared_with_all_trainings_at_a_time(cards, monkeypatch):
    """GPUs are pretended, so many that no machine has the memory or the disk for what they train."""
    assert 0 < memory_of_machine() <= psutil.virtual_memory().total
    monkeypatch.setattr("mcgrpo.commands.memory.memory_of_machine", lambda: 2**36)
    small = changed(PAPER, SMALL)
    cards("", "")  # jobs run elsewhere
    found = host(small)
    assert {status for status, *_ in found.values()} == {"ok"}
    assert found["memory"][1].startswith("host: one training takes up to 6.0 of ")
    assert found["disk"][1].startswith("one training takes up to 0.1 of ")
    cards("", ",".join(map(str, range(20_000))))
    status, finding, remedy = host(small)["memory"]
    assert status == "warning" and finding.startswith("host: 20000 trainings at a time take up to 120,2")
    number, gpus = re.fullmatch("at most ([0-9]+) at a time: `--resources gpu=([0-9]+)`", remedy).groups()
    assert int(number) == int(gpus) > 0
    status, finding, _ = host(PAPER)["disk"]
    assert status == "warning" and finding.startswith("10000 trainings at a time take up to 3,046,195.0 of ")
    assert "(a checkpoint: 121.8, qwen2.5-7b-math/" in finding


def test_a_training_that_this_machine_cannot_start_is_an_error(cards):
    cards("", "0,1")
    config = changed(PAPER, {"models": {"qwen2.5-7b": {"config": {"num_hidden_layers": 100_000}}}})
    (status, _, remedy), (on_disk, *_) = host(config).values()
    assert (status, remedy, on_disk) == ("error", "a machine with more memory", "warning")


def test_a_card_of_which_nvml_tells_no_memory_is_no_error(cards, monkeypatch):
    """One that shares the machine's memory, or an abbreviated UUID in CUDA_VISIBLE_DEVICES."""
    pynvml = pytest.importorskip("pynvml")
    monkeypatch.delenv("MCGRPO_DEVICES", raising=False)
    answers = {"nvmlInit": None, "nvmlDeviceGetCount": 1, "nvmlDeviceGetHandleByIndex": 0, "nvmlDeviceGetUUID": "GPU-x"}
    for name, value in (answers | {"nvmlDeviceGetHandleByUUID": 0}).items():
        monkeypatch.setattr(pynvml, name, lambda *_, value=value: value)

    def refuse(handle):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", refuse)
    assert memory_of_gpus() == [] and found(PAPER) == {}
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", lambda handle: SimpleNamespace(total=80 * GIB))
    assert memory_of_gpus() == [80 * GIB]


def test_a_study_on_cpus_has_neither():
    assert host(load("mini")) == {}


def test_without_a_known_size_there_is_nothing_to_compare(cards, monkeypatch):
    cards("")
    assert memory_of_gpus() == [] and found(PAPER) == {}
    cards("80", "")
    assert memory_of_gpus() == []
    cards("80")
    assert memory_of_gpus() == [80 * GIB] * 2


def test_plan_prints_the_parts_of_each_setting(cards):
    text = "\n".join(listing(PAPER))
    row = next(line for line in text.splitlines() if line.startswith("qwen2.5-7b-math"))
    assert re.search(r"16 x 3,584 +fsdp +14\.2 +28\.4 +14\.2 ", row) and " 30% " in row
    assert "prompts of 512 tokens are assumed" in text


def test_plan_says_whose_sizes_it_does_not_know(cards):
    config = changed(PAPER, {"models": {"qwen2.5-7b": {"config": None}}})
    assert "unknown for qwen2.5-7b (" in list(listing(config))[-1]
    assert list(listing(load("mini"))) == []
