"""What `mcgrpo doctor` says of Python's packages, installed and not."""

from dataclasses import replace

import pytest
import runs
import studies

from mcgrpo.commands.doctor import packages

MINI = studies.load("mini")


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


def by_topic(config, training):
    run = replace(runs.RUN, training=training)
    return {check.topic: check for check in packages.check_packages({**MINI, **config}, [run])}


def test_packages_are_those_that_the_project_declares(install):
    assert by_topic({}, {})["packages"].status == "ok"
    install(trl="0.9.0")
    found = by_topic({}, {})["packages"]
    assert found.status == "error" and "trl 0.9.0 is installed, ==1.16.0 is needed" in found.finding


def test_settings_ask_for_packages_of_their_own(install):
    install(vllm="0.1.0", flash_attn="2.8.0")
    found = by_topic({"gpus": 2}, {"use_vllm": True, "attn_implementation": "flash_attention_2"})
    assert found["vllm"].status == "error" and "0.1.0 is installed" in found["vllm"].finding
    assert found["flash-attn"].status == "ok"
    assert not {"vllm", "peft", "flash-attn", "torch"} & by_topic({}, {}).keys()


def test_a_torch_for_cpus_is_no_use_to_gpus(install):
    install(torch="2.13.0+cpu")
    assert by_topic({"gpus": 1}, {})["torch"].status == "error"
    assert by_topic({"gpus": 0}, {})["packages"].status == "ok"
