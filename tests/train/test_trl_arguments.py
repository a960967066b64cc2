"""The record of TRL's arguments, against TRL: no default that drifts, no argument that is recorded nowhere."""

import dataclasses
from collections import Counter
from pathlib import Path

import pytest
import yaml
from training_jobs import changed
from trl import GRPOConfig
from trl_arguments import ARGUMENTS, IRRELEVANT, RUN, STUDY, table

from mcgrpo.train.arguments import TRL_CHANGES, arguments_of
from mcgrpo.train.released import ReleasedConfig

ROOT = Path(__file__).parents[2]
README = (ROOT / "config/README.md").read_text()
DEFAULTS = {
    field.name: field.default_factory() if field.default is dataclasses.MISSING else field.default
    for field in dataclasses.fields(GRPOConfig)
}
RECORDED = STUDY | {name: default for name, (default, _) in (ARGUMENTS | RUN).items()}


def undrifted(recorded, actual):
    """The names whose default is another than what is recorded."""
    return {
        name for name, default in recorded.items() if (type(default), default) != (type(actual[name]), actual[name])
    }


def test_every_argument_of_trl_is_recorded_once():
    names = Counter([*STUDY, *RUN, *ARGUMENTS, *(name for group in IRRELEVANT.values() for name in group.split())])
    assert set(names) == set(DEFAULTS)
    assert [name for name, count in names.items() if count > 1] == []


def test_no_default_of_trl_has_drifted():
    assert undrifted(RECORDED, DEFAULTS) == set()


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
    assert keys - set(DEFAULTS) - ours == {
        "prompts_per_step",
        "sharding",
        "attn_implementation",
        "lora",
        "select_checkpoint",
    }


@pytest.mark.parametrize("name", STUDY)
def test_keys_of_a_study_have_a_row_with_their_source(name):
    rows = [line for line in README.split("## Training")[1].split("## Variants")[0].splitlines() if line[:1] == "|"]
    assert any(f"`{name}`" in row.split("|")[1] for row in rows)


def test_the_documentation_has_the_table():
    begin, end = "`python tests/support/trl_arguments.py`) -->\n", "\n<!-- arguments: end -->"
    assert README.split(begin)[1].split(end)[0] == table()
