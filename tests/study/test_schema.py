"""The schema of study files against the code that reads them; keys of `training`: tests/train/test_trl_arguments.py."""

from dataclasses import MISSING, fields

import yaml
from jsonschema import Draft202012Validator
from studies import ROOT

from mcgrpo.analyse.measures import MEASURES, verdict_column
from mcgrpo.estimators import ESTIMATORS
from mcgrpo.grade.rewards import reward_functions
from mcgrpo.records import PROTOCOLS, Grade
from mcgrpo.study.methods import METHODS

SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/study.schema.yaml").read_text())


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_knows_what_the_code_knows():
    methods = SCHEMA["properties"]["experiments"]["additionalProperties"]["properties"]["methods"]
    assert methods["items"]["enum"] == list(METHODS)
    protocols = SCHEMA["properties"]["grading"]["items"]["enum"]
    assert protocols == list(PROTOCOLS) == list(MEASURES)
    assert {verdict_column(each) for each in PROTOCOLS} <= Grade.__dataclass_fields__.keys()
    of_training = SCHEMA["properties"]["variants"]["additionalProperties"]["properties"]["protocol"]["enum"]
    assert of_training == [name for name in protocols if name != "robust"]  # which only grades
    assert {method.estimator for method in METHODS.values()} <= set(ESTIMATORS)
    assert {method.baseline for method in METHODS.values()} - {None} <= set(METHODS)
    names = list(SCHEMA["$defs"]["rewards"]["properties"])
    assert len(reward_functions("gsm8k", names)) == len(names)


def test_the_schema_knows_the_toy_models():
    from mcgrpo.data.toy.models import ModelSpec
    from mcgrpo.data.toy.task import KINDS

    spec = SCHEMA["$defs"]["toy_model"]
    assert list(spec["properties"]) == [field.name for field in fields(ModelSpec)]
    assert spec["required"] == [field.name for field in fields(ModelSpec) if field.default is MISSING]
    data = SCHEMA["properties"]["datasets"]["additionalProperties"]["properties"]
    assert set(data["toy"]["properties"]["kind"]["enum"]) == set(KINDS)
