"""The benchmark of training: what it compares is comparable, and what it judges follows from its rows."""

import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from tiny_training import dataset, digits_reward, model_folder

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench.training import contenders, figure, verdicts
from bench.training.measure import Case, Task, measure, trainer_of
from mcgrpo.train.arguments import TRL_CHANGES
from mcgrpo.trainer.timing import PHASES

pytestmark = pytest.mark.slow


@pytest.fixture
def task():
    settings = {**TRL_CHANGES, "use_cpu": True, "learning_rate": 1e-6, "max_completion_length": 8, "loss_type": "grpo"}
    return Task(model_folder(), dataset(), digits_reward, settings, right=0.5, prompts_per_step=4)


def updates(task, name, tmp_path):
    """The advantages of every row of three updates, sorted, and how many rows there were."""
    trainer = trainer_of(task, Case(num_generations=2), contenders.CONTENDERS[name], 3, 0, str(tmp_path))
    seen, theirs = [], trainer._compute_loss
    trainer._compute_loss = lambda model, inputs: seen.append(inputs["advantages"]) or theirs(model, inputs)
    trainer.train()
    return [sorted(advantages.tolist()) for advantages in seen]


def test_the_release_s_way_and_ours_train_on_the_same(task, tmp_path):
    theirs, ours, compact = (updates(task, name, tmp_path) for name in ("drop-afterwards", "mc", "mc-compact"))
    assert [len(rows) for rows in ours] == [8, 8, 8] and any(any(rows) for rows in ours)
    assert theirs == ours
    signed = [[advantage for advantage in rows if advantage] for rows in ours]
    assert [[advantage for advantage in rows if advantage] for rows in compact] == signed
    assert sum(map(len, compact)) < 24


def test_everybody_is_timed_phase_by_phase(task):
    found = measure(task, Case(num_generations=2, beta=0.04, num_iterations=2), list(contenders.CONTENDERS), 1, 2)
    assert [each.contender for each in found] == list(contenders.CONTENDERS)
    for each in found:
        assert each.steps == 2
        assert all(seconds > 0 for seconds in each.phases.values())
        assert each.seconds > max(each.phases.values())


def test_the_phases_of_a_step_make_up_its_time(task, tmp_path):
    for name in ("trl", "drop-afterwards", "mc-compact"):
        trainer = trainer_of(task, Case(num_generations=2, beta=0.04), contenders.CONTENDERS[name], 3, 0, str(tmp_path))
        started = time.perf_counter()
        trainer.train()
        whole = time.perf_counter() - started
        steps = [row for row in trainer.state.log_history if "seconds/update" in row]
        within = sum(row[f"seconds/{phase}"] for row in steps for phase in PHASES)
        assert len(steps) == 3
        assert sum(row["step_time"] for row in steps) <= within * 1.001 <= whole * 1.001


def rows(**seconds):
    """A benchmark in which every contender takes 1 s, 0.4 of it for generation, but those that are named."""
    extra = {"trl-plus1": 0.5}
    return [
        {"num_generations": size, "beta": 0.0, "num_iterations": 1, "completion_length": None, "contender": name}
        | {"steps": 9, "seconds": seconds.get(name.replace("-", "_"), 1.0)}
        | {"generation": extra.get(name, 0.4), "rewards": 0.0, "logprobs": 0.1, "update": 0.5}
        for size in (2, 4)
        for name in contenders.CONTENDERS
    ]


def failing(found):
    return [what.split(" takes")[0] for what, holds in verdicts.verdicts(pd.DataFrame(found)) if not holds]


def test_requirements_by_hand():
    assert failing(rows()) == []
    assert failing(rows(mean=1.06)) == ["G=2: mean", "G=4: mean"]
    assert failing(rows(mean_compact=1.06)) == ["G=2: mean-compact", "G=4: mean-compact"]
    assert failing(rows(mc=1.14)) == []  # 1.05 and a tenth for the extra rollout
    assert failing(rows(mc=1.16)) == ["G=2: mc", "G=4: mc"]
    assert failing(rows(mc_compact=1.01)) == ["G=4: mc-compact"]


def test_shares_and_figure(tmp_path):
    table = pd.DataFrame(rows(mc_compact=0.5))
    assert "| mcgrpo, median, compact                 | 0.50    | 0.50" in figure.as_markdown(table, threads=2)
    assert "1000 ms" in figure.as_markdown(table, threads=2)
    figure.draw(table, tmp_path)
    assert (tmp_path / "training.png").stat().st_size > 10_000
