"""Every argument of TRL is in config/README.md: no default that drifts, no argument that is recorded nowhere."""

import ast
import dataclasses
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from training_jobs import changed
from trl import GRPOConfig

from mcgrpo.train.arguments import OURS, TRL_CHANGES, arguments_of
from mcgrpo.train.released import ReleasedConfig

ROOT = Path(__file__).parents[2]
README = (ROOT / "config/README.md").read_text()
OTHERS, NOT_LISTED = README.split("### Every other argument of TRL")[1].split("### Rewards")[0].split("Not listed")
DEFAULTS = {
    field.name: field.default_factory() if field.default is dataclasses.MISSING else field.default
    for field in dataclasses.fields(GRPOConfig)
}
STUDY = {
    "per_device_train_batch_size": 8,
    "per_device_eval_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "steps_per_generation": None,
    "num_iterations": 1,
    "max_steps": -1,
    "num_train_epochs": 3.0,
    "learning_rate": 1e-6,
    "lr_scheduler_type": "linear",
    "warmup_steps": 0,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "beta": 0.0,
    "use_bias_correction_kl": True,
    "epsilon": 0.2,
    "epsilon_high": None,
    "temperature": 1.0,
    "max_completion_length": 512,
    "chat_template_kwargs": None,
    "bf16": None,
    "gradient_checkpointing": True,
    "use_vllm": False,
    "vllm_mode": "colocate",
    "vllm_gpu_memory_utilization": 0.3,
    "vllm_enable_sleep_mode": False,
    "vllm_tensor_parallel_size": 1,
    "vllm_max_model_length": None,
    "vllm_server_base_url": None,
    "vllm_server_timeout": 240.0,
    "eval_steps": None,
}
"""Keys of a study's `training`, with TRL's defaults."""


def read(cell):
    """A value as the tables spell it."""
    if cell == "none":
        return None
    try:
        return ast.literal_eval(cell.strip("`"))
    except ValueError:
        return cell.strip("`")


ROWS = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+) \|$", OTHERS, re.MULTILINE)
ARGUMENTS = {name: (read(ours), read(default)) for name, ours, default, source in ROWS if source != "ours"}
"""What a study cannot set -> our value, and TRL's default."""
RECORDED = STUDY | {name: read(default) for name, _, default, _ in ROWS}
IRRELEVANT = re.findall(r"`(\w+)`", NOT_LISTED)


def undrifted(recorded, actual):
    """The names whose default is another than what is recorded."""
    return {
        name for name, default in recorded.items() if (type(default), default) != (type(actual[name]), actual[name])
    }


def test_every_argument_of_trl_is_recorded_once():
    names = Counter([*STUDY, *(name for name, *_ in ROWS), *IRRELEVANT])
    assert set(names) == set(DEFAULTS)
    assert [name for name, count in names.items() if count > 1] == []


def test_no_default_of_trl_has_drifted_and_our_values_are_those_of_the_table():
    assert undrifted(RECORDED, DEFAULTS) == set()
    given = {name: (TRL_CHANGES.get(name, default), default) for name, (_, default) in ARGUMENTS.items()}
    assert given == ARGUMENTS


@pytest.mark.parametrize("faults", [{}, {"group_by": "position"}], ids=["paper", "released"])
def test_a_run_is_given_what_is_recorded(faults, tmp_path):
    """Against TRL's own configuration with every recorded value written out."""
    given = {name: TRL_CHANGES.get(name, RECORDED[name]) for name in (*STUDY, *ARGUMENTS)}
    run = changed(**faults)
    given |= {name: value for name, value in run.training.items() if name in STUDY}
    expected = GRPOConfig(str(tmp_path), use_cpu=True, num_generations=run.num_generations, **given)
    args = arguments_of(run, tmp_path, 0)
    assert {name: getattr(args, name) for name in given} == {name: getattr(expected, name) for name in given}


def test_what_runs_change_is_an_argument_of_trl_with_another_default():
    assert {name for name, value in TRL_CHANGES.items() if DEFAULTS[name] == value} == set()


def test_keys_of_a_study_are_those_of_its_schema():
    schema = yaml.safe_load((ROOT / "workflow/schemas/study.schema.yaml").read_text())
    keys = set(schema["$defs"]["training"]["properties"])
    assert keys & set(DEFAULTS) == set(STUDY)
    ours = {field.name for field in dataclasses.fields(ReleasedConfig)} - set(DEFAULTS)
    assert keys - set(DEFAULTS) - ours == {"prompts_per_step", *OURS} - set(DEFAULTS) - ours


def test_keys_of_a_study_have_a_row_with_their_source():
    training = README.split("## Training")[1].split("## Variants")[0]
    named = {
        name for cell in re.findall(r"^\|(.*?)\|", training, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }
    assert STUDY.keys() <= named
