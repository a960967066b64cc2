import math
import pickle

import pytest

from mcgrpo.grade.rewards import count_verdicts, is_accurate, judge, reward_functions, reward_of, text_of
from mcgrpo.grade.task import Judgement
from mcgrpo.records import VERDICTS


def test_rewards_and_accuracy_follow_from_verdicts():
    rewards = {verdict: reward_of(Judgement(verdict, None)) for verdict in VERDICTS}
    assert rewards == {"correct": 2.0, "equivalent": 1.5, "wrong": 0, "unparseable": 0, "timeout": 0, "error": 0}
    assert [verdict for verdict in VERDICTS if is_accurate(verdict)] == ["correct", "equivalent"]


def test_a_gold_that_does_not_parse_is_one_and_counted():
    judgement = Judgement("unparseable", None, gold_parsable=False)
    assert reward_of(judgement) == 1.0
    counts = count_verdicts([judgement, Judgement("wrong", "1")])
    assert counts == dict.fromkeys(VERDICTS, 0) | {"unparseable": 1, "wrong": 1, "gold_unparsable": 1}


def test_functions_as_trl_calls_them():
    accuracy, formatting = reward_functions("gsm8k", ["accuracy", "format"])
    assert (accuracy.__name__, formatting.__name__) == ("accuracy_reward", "format_reward")
    completions = ["<answer>72</answer>", "<answer>72.0</answer> \\boxed{72}", "<answer>7\ud800</answer>", "72"]
    columns, metrics = {}, {}
    inputs = {"prompts": ["q"] * 4, "completion_ids": [[1]] * 4, "answer": ["72"] * 4, "trainer_state": None}
    rewards = accuracy(completions=completions, log_extra=columns.__setitem__, log_metric=metrics.__setitem__, **inputs)
    assert rewards == [2.0, 1.5, 0.0, 0.0]
    assert columns == {
        "verdict": ["correct", "equivalent", "wrong", "unparseable"],
        "extracted": ["72", "72.0", "7?", ""],
    }
    assert metrics == {
        **{f"verdicts/{verdict}": int(verdict in columns["verdict"]) for verdict in VERDICTS},
        "verdicts/gold_unparsable": 0,
    }
    assert formatting(completions=completions, **inputs) == [0.0, 1.0, 0.0, 0.0]
    assert accuracy(completions, ["72"] * 4) == rewards
    sent = pickle.loads(pickle.dumps(accuracy))  # TRL's asynchronous trainer sends it to another process
    assert sent(completions=completions, task=["a column"] * 4, verifier=[None] * 4, **inputs) == rewards
    assert sent.__name__ == "accuracy_reward"


def test_conversations_are_read_by_their_last_message():
    (accuracy,) = reward_functions("gsm8k", ["accuracy"])
    said = [{"role": "assistant", "content": "<answer>72</answer>"}]
    silent = [{"role": "assistant", "content": None}]
    assert accuracy([said, silent, []], ["72"] * 3) == [2.0, 0.0, 0.0]
    assert text_of([{"role": "tool", "content": "1"}, {"role": "assistant", "content": "2"}]) == "2"
    parts = [{"type": "text", "text": "<answer>"}, {"type": "text", "text": "72</answer>"}]
    assert accuracy([[{"role": "assistant", "content": parts}]], ["72"]) == [2.0]


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_gold_is_no_text(missing, patient):
    """As of a data set with nulls, or from pandas; of math the solution's answer is taken then."""
    (judgement,) = judge("gsm8k", ["<answer>None</answer>"], [missing])
    assert (judgement.verdict, judgement.gold_parsable) == ("unparseable", False)
    (judgement,) = judge("math", ["Thus $\\boxed{5}$."], [missing], ["so \\boxed{5}"], verifier=patient)
    assert judgement.verdict == "correct"


def test_math_rewards(patient):
    (accuracy,) = reward_functions("math", ["accuracy"], verifier=patient)
    completions = ["\\boxed{0.5}", "\\boxed{2}", "\\boxed{", "\\boxed{27}", "\\boxed{27.0}", "\\boxed{1}"]
    answers = ["\\frac12"] * 3 + ["27.0", 27, ""]
    columns = {}
    rewards = accuracy(
        completions, answers, ["so $\\boxed{\\frac{1}{2}}$", None, "", "", None, ""], columns.__setitem__
    )
    assert rewards == [2.0, 0.0, 0.0, 2.0, 2.0, 1.0]
    assert columns["verdict"] == ["correct", "wrong", "unparseable", "correct", "correct", "unparseable"]
    assert columns["extracted"][:2] == ["0.5", "2"]


def test_the_released_protocol_reaches_the_reward():
    (loose,) = reward_functions("gsm8k", ["accuracy"], protocol="released")
    assert loose(["it is -72"], ["72"]) == [2.0]


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("gsm9k", ["accuracy"]), "gsm9k"),
        (("gsm8k", ["acuracy"]), "acuracy"),
        (("math", ["format"], "relesed"), "relesed"),
    ],
)
def test_unknown_names_are_refused(arguments, culprit):
    task, names, *protocol = arguments
    with pytest.raises(ValueError, match=culprit):
        reward_functions(task, names, **({"protocol": protocol[0]} if protocol else {}))


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="zip"):
        judge("gsm8k", ["1", "2"], ["1"])
