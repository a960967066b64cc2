"""Comparisons at as many rollouts, and seeds that end far below the others."""

import pytest
from studies import load
from study_frames import cells as all_cells
from study_frames import score

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.records import ASKED_TOKENS, FIT_TOKENS
from mcgrpo.analyse.summarise import extra_rollouts
from mcgrpo.study.plan import plan_of


def trained(method, budget, accuracies, rollouts, variant="default"):
    """The scores of a cell: greedy accuracies by seed, and the rollouts of each training."""
    on_train = {"measure": "rollouts", "benchmark": "train", "role": "train"}
    for seed, accuracy in enumerate(accuracies):
        yield score(method, budget, seed, accuracy, variant=variant)
        yield score(method, budget, seed, rollouts, variant=variant, **on_train)


def cells(folder, *rows):
    found = all_cells(folder, [row for each in rows for row in each])
    return {key[:3]: cell for key, cell in found.items() if key[4] == "greedy"}


def test_an_extra_rollout_is_compared_with_the_g_that_draws_it_too(tmp_path):
    found = cells(
        tmp_path,
        trained("mc-grpo", 2, [0.6, 0.62], 960),
        trained("grpo", 2, [0.5, 0.5], 640),
        trained("grpo", 3, [0.55, 0.53], 960),
        trained("grpo", 8, [0.7, 0.72], 2560),
        trained("grpo", 2, [0.66, 0.62], 2560, variant="rival-prompts-x4"),
    )
    median, prompts = found["mc-grpo", 2, "default"], found["grpo", 2, "rival-prompts-x4"]
    assert (median.same_rollouts_generations, median.same_rollouts_seeds) == (3, 2)
    assert median.same_rollouts == pytest.approx(0.07)  # 0.05 and 0.09
    assert median.difference == pytest.approx(0.11)
    assert prompts.same_rollouts_generations == 8
    assert prompts.same_rollouts == pytest.approx(-0.07)  # -0.04 and -0.10
    assert prompts.same_rollouts_low < -0.07 < prompts.same_rollouts_high


def test_a_cell_is_not_compared_with_itself_nor_another_estimator_at_its_own_batch(tmp_path):
    """The change says that already."""
    sign = trained("grpo", 2, [0.5], 640, variant="rival-sign")
    found = cells(tmp_path, trained("grpo", 2, [0.5], 640), sign, trained("grpo", 4, [0.6], 640, variant="other"))
    assert found["grpo", 2, "default"].same_rollouts is None
    assert found["grpo", 2, "rival-sign"].same_rollouts is None
    assert found["grpo", 4, "other"].same_rollouts is None  # which no table shows


def test_a_collapsed_seed_is_counted_against_the_mean_centred_method(tmp_path):
    found = cells(
        tmp_path,
        trained("grpo", 2, [0.6, 0.58, 0.62, 0.4], 640),
        trained("mc-grpo", 2, [0.65, 0.63, 0.48, 0.51], 960),  # the median of GRPO is 0.59
        trained("grpo-plus1", 2, [0.3, 0.3, 0.3, 0.3], 960),
    )
    expected = {"grpo": (0.4, 0.25), "mc-grpo": (0.48, 0.25), "grpo-plus1": (0.3, 1.0)}
    assert {method: (cell.worst, cell.collapsed) for (method, *_), cell in found.items()} == expected


def test_only_accuracies_have_a_worst_seed_and_may_collapse(tmp_path):
    others = ["rate-cut-greedy", "rate-timeout", FIT_TOKENS, ASKED_TOKENS]
    accuracies = ["greedy", "avg@4", "pass@4", "released-any@4", "robust-greedy"]
    rows = [score("grpo", 2, seed, 0.1 + 0.5 * seed, measure=name) for name in others + accuracies for seed in (0, 1)]
    filled = {key[4]: (cell.worst, cell.collapsed) for key, cell in all_cells(tmp_path, rows).items() if cell.seeds}
    assert filled == dict.fromkeys(accuracies, (0.1, 0.5)) | dict.fromkeys(others, (None, None))


def test_a_variant_is_counted_against_its_own_mean_centred_cell_if_there_is_one(tmp_path):
    found = cells(
        tmp_path,
        trained("grpo", 2, [0.6], 640),
        trained("grpo", 2, [0.3], 640, variant="composite"),
        trained("mc-grpo", 2, [0.25], 960, variant="composite"),
        trained("mc-grpo", 2, [0.25], 960, variant="mad-zero-skip"),
        trained("grpo", 2, [0.02], 640, variant="rival-sign"),
    )
    assert found["mc-grpo", 2, "composite"].collapsed == 0
    assert found["mc-grpo", 2, "mad-zero-skip"].collapsed == 1
    assert found["grpo", 2, "rival-sign"].collapsed == 1


def test_a_variant_with_another_estimator_draws_as_many_rollouts_as_that():
    extra = extra_rollouts(plan_of(load("mini")), {})
    cells = [("default", "grpo"), ("default", "mc-grpo"), ("released", "grpo"), ("rival-pods", "grpo")]
    found = [extra[CellKey("toy-qwen3", variant, "train", "train", "", 2, method)] for variant, method in cells]
    assert found == [0, 1, 1, 8]
