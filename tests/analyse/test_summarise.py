import math
import random
from dataclasses import replace

import numpy as np
import pytest
from study_frames import cell, cell_scores, cells, command, plan_of, score, scores_by_cell, study, with_values

from mcgrpo.analyse.comparisons import comparisons
from mcgrpo.analyse.crossed import Weighted, contrast, share
from mcgrpo.analyse.frames import read_cells, seed_gains
from mcgrpo.analyse.published import as_cells
from mcgrpo.analyse.records import Published
from mcgrpo.analyse.summarise import summarise
from mcgrpo.study.paths import ResultFiles


def numbers(cell):
    """What is empty where no seed is there."""
    names = ("n", "mean", "low", "high", "over", "difference", "difference_low", "difference_seeds")
    return [getattr(cell, name) for name in names]


def test_a_cell_has_its_mean_its_seeds_and_a_paired_difference(tmp_path):
    found = cell(cells(tmp_path, study()), "mc-grpo", "avg@4")
    assert (found.planned, found.seeds, found.n, found.over) == (3, 3, 100, "seeds and problems")
    assert (found.baseline, found.difference_seeds) == ("grpo", 3)
    assert found.mean == pytest.approx(0.45)
    # Problems have no noise here. The noise that seeds share is gone from the difference, but not from the mean.
    assert found.difference == pytest.approx(0.05)
    assert found.difference_high - found.difference_low == pytest.approx(2 * 4.302653 * 0.001 / math.sqrt(3), rel=1e-5)
    assert found.high - found.mean > 10 * (found.difference_high - found.difference)
    assert found.published is None


def test_intervals_are_over_shared_seeds_and_problems(tmp_path):
    rows = study()
    rows.remove(next(row for row in rows if (row.method, row.seed, row.measure) == ("mc-grpo", 1, "greedy")))
    values = {(v.method, v.num_generations, v.seed): v.values for v in with_values(rows, 0.2) if v.measure == "greedy"}
    ours, theirs = ([values[method, 2, seed] for seed in (0, 2)] for method in ("mc-grpo", "grpo"))
    found = cell(cells(tmp_path, rows, spread=0.2), "mc-grpo")
    assert (found.planned, found.seeds, found.difference_seeds) == (3, 2, 2)
    own = share(np.array(ours))
    assert (found.mean, found.low, found.high) == pytest.approx((own.mean, *own.limits()))
    paired = contrast([{"sums": Weighted(np.array(ours) - np.array(theirs))}])
    expected = (paired.mean, *paired.limits())
    assert (found.difference, found.difference_low, found.difference_high) == pytest.approx(expected)


def test_what_an_interval_is_over(tmp_path):
    rows = [*study(), *cell_scores("grpo", 2, 0.7, measure="reward", benchmark="train", role="train")]
    found = cells(tmp_path, rows, spread=0.2)
    untrained, reward = cell(found, "none", budget=0), cell(found, "grpo", "reward", benchmark="train")
    times = cell(found, "mc-grpo", "seconds", benchmark="train")
    assert (untrained.over, untrained.seeds) == ("problems", 1)
    assert untrained.low < 0.3 < untrained.high
    assert (reward.over, reward.seeds) == ("seeds", 3)
    assert reward.high - reward.mean == pytest.approx(4.302653 * 0.02 / math.sqrt(3), rel=1e-5)
    # One of three trainings has its time: a mean, but nothing to take an interval over.
    assert (times.over, times.low, times.planned, times.seeds) == (None, None, 3, 1)


def test_planned_cells_that_are_not_there_have_empty_rows(tmp_path):
    found = cells(tmp_path, study())
    missing = cell(found, "mc-grpo", "avg@4", budget=4)
    assert (missing.planned, missing.seeds, missing.baseline) == (3, 0, "grpo")
    assert set(numbers(missing)) == {None}
    assert cell(found, "mc-grpo", "seconds", budget=4, benchmark="train").planned == 3


def test_a_study_without_scores_has_its_headline_rows(tmp_path):
    plan = plan_of([*study(), score("mc-grpo", 2, 0, 0.1, measure="rate", role="flips")])
    found = cells(tmp_path, [], plan)
    assert {key[3:] for key in found} == {("sums", "greedy"), ("sums", "avg@4"), ("train", "seconds")}
    assert {c.seeds for c in found.values()} == {0}
    assert ("none", 0, "default", "train", "seconds") not in found
    assert len(found) == 2 * 6 + 5


def test_rows_are_of_every_measure_that_any_cell_has_on_the_benchmark(tmp_path):
    far = {"benchmark": "chains", "role": "out"}
    rows = [*study(), score("grpo", 4, 0, 0.2, measure="pass@4", **far)]
    plan = plan_of([*rows, *cell_scores("mc-grpo", 2, 0.0, **far)])
    found = cells(tmp_path, rows, plan)
    assert {key[4] for key in found if key[3] == "chains"} == {"pass@4"}
    assert cell(found, "mc-grpo", "pass@4", benchmark="chains").planned == 3
    assert ("mc-grpo", 2, "default", "sums", "pass@4") not in found


def test_sign_flips_are_rows_of_the_runs_that_are_planned_for_them(tmp_path):
    rows = [*study(), score("mc-grpo", 2, 0, 0.2, measure="rate-k4", role="flips")]
    found = [c for c in cells(tmp_path, rows, spread=0.1).values() if c.role == "flips"]
    (row,) = [(c.method, c.planned, c.seeds, c.benchmark, c.over) for c in found]
    assert row == ("mc-grpo", 1, 1, "sums", "problems")


def test_pairing_keeps_to_one_variant_and_budget(tmp_path):
    rows = cell_scores("grpo", 2, 0.1) + cell_scores("grpo", 4, 0.2) + cell_scores("grpo", 2, 0.3, variant="format")
    rows += cell_scores("mc-grpo", 2, 0.5, variant="format") + cell_scores("mc-grpo", 8, 0.5)
    found = cells(tmp_path, rows)
    assert cell(found, "mc-grpo", variant="format").difference == pytest.approx(0.2)
    alone = cell(found, "mc-grpo", budget=8)
    assert (alone.difference, alone.difference_seeds, alone.baseline) == (None, None, None)


def test_the_change_to_the_default_variant_is_paired_too(tmp_path):
    jitter = (-0.001, 0.0, 0.001)
    rows = cell_scores("grpo", 2, 0.5) + cell_scores("grpo", 2, 0.4, jitter, variant="format")[:2]
    found = cells(tmp_path, rows)
    changed, default = cell(found, "grpo", variant="format"), cell(found, "grpo")
    assert (changed.change, changed.change_seeds) == (pytest.approx(-0.1005), 2)
    assert changed.change_low < -0.1005 < changed.change_high
    assert (default.change, default.change_low, default.change_seeds) == (None, None, None)


def published(setting, method, value, benchmark="sums", measure="accuracy", table="main"):
    return Published(table, 1, setting, method, 2, "default", benchmark, measure, value)


def test_published_numbers_stand_beside_ours(tmp_path):
    printed = {"grpo": 78.92, "mc-grpo": 83.54, "grpo-plus1": 81.0}
    rows = [published("toy_a", method, value) for method, value in printed.items()]
    rows += [published("toy_b", "grpo", 1.0), published("toy_a", "mc-grpo", 1521.0, "train", "seconds")]
    found = cells(tmp_path, study(), printed=as_cells(rows))
    ours = cell(found, "mc-grpo")
    assert (ours.published, ours.published_difference) == (pytest.approx(0.8354), pytest.approx(0.0462))
    assert (cell(found, "grpo").published, cell(found, "grpo").published_difference) == (pytest.approx(0.7892), None)
    assert cell(found, "mc-grpo", "seconds", benchmark="train").published == 1521.0
    assert cell(found, "mc-grpo", "avg@4").published is None
    assert cell(found, "mc-grpo", budget=4).published is None


def gain_of(folder, ours, theirs, margin=0.01, **options):
    """The row of a gain, seed by seed, with values that a problem adds nothing to."""
    rows = [score("mc-grpo", 2, seed, value) for seed, value in enumerate(ours)]
    rows += [score("grpo", 2, seed, value) for seed, value in enumerate(theirs)]
    plan = replace(plan_of(rows), equivalence_margin=margin)
    return cell(cells(folder, rows, plan, **options), "mc-grpo")


def test_a_gain_excludes_the_published_gain_or_does_not(tmp_path):
    for printed, excluded in ((60.0, False), (90.0, True), (40.0, True)):
        numbers = as_cells([published("toy_a", "grpo", 50.0), published("toy_a", "mc-grpo", printed)])
        found = gain_of(tmp_path, (0.61, 0.60, 0.62), (0.5, 0.5, 0.5), printed=numbers)
        assert found.difference_excludes_published is excluded
    assert gain_of(tmp_path, (0.61, 0.60, 0.62), (0.5, 0.5, 0.5)).difference_excludes_published is None
    one_seed = gain_of(tmp_path, (0.6,), (0.5,), printed=numbers)
    assert one_seed.difference_low is not None
    assert one_seed.difference_excludes_published is None
    assert one_seed.difference_verdict == "inconclusive" and one_seed.difference_detectable is None


def test_every_seed_of_a_gain_is_told(tmp_path):
    rows = study() + cell_scores("grpo", 2, 0.45, variant="format")
    for row in cells(tmp_path, rows).values():
        gains = seed_gains(row)
        assert len(gains) == (row.difference_seeds or 0)
        assert not gains or np.mean(gains) == pytest.approx(row.difference)


def test_a_published_number_without_a_setting_is_of_every_one_out_of_distribution(tmp_path):
    numbers = [published("", method, value, "aime24", table="ood") for method, value in [("grpo", 20), ("mc-grpo", 25)]]
    far = {"benchmark": "aime24", "role": "out"}
    both = [(method, name) for method in ("mc-grpo", "grpo") for name in ("toy_a", "toy_b")]
    rows = [row for method, name in both for row in cell_scores(method, 2, 0.2, setting=name, **far)]
    rows += cell_scores("mc-grpo", 2, 0.2, setting="toy_c", **far | {"role": "in"})
    printed = as_cells(numbers)
    summary = summarise(plan_of(rows), scores_by_cell(tmp_path, rows), printed)
    found = {c.setting: c for c in summary if c.measure == "greedy" and c.method == "mc-grpo"}
    assert [found[name].published for name in ("toy_a", "toy_b", "toy_c")] == [0.25, 0.25, None]
    compared = comparisons(plan_of(rows), [], scores_by_cell(tmp_path, rows), printed)
    assert {
        row.published and round(row.published, 9)
        for row in compared
        if (row.setting, row.measure) == ("toy_a", "greedy")
    } == {0.05}


def test_the_order_of_rows_does_not_matter(tmp_path):
    rows, plan = study(), plan_of(study())
    files = command(tmp_path, plan, rows), tmp_path / "comparisons.csv"
    first = [path.read_bytes() for path in files]
    for mixed in (rows, plan.runs):
        random.Random(3).shuffle(mixed)
    command(tmp_path, plan, rows)
    assert [path.read_bytes() for path in files] == first


def test_the_command_writes_what_read_frame_reads(tmp_path):
    place = {"setting": "qwen3-1.7b-gsm8k", "benchmark": "gsm8k"}
    rows = cell_scores("grpo", 2, 0.5, **place) + cell_scores("mc-grpo", 2, 0.44, **place)
    command(tmp_path, plan_of(rows), rows)
    row = read_cells(ResultFiles(tmp_path)).query("method == 'mc-grpo' and role == 'in'").iloc[0]
    assert (row.seeds, row.difference, row.published) == (3, pytest.approx(-0.06), pytest.approx(0.8354))


def test_settings_stand_in_the_order_of_the_study_file_and_methods_in_theirs(tmp_path):
    rows = study() + [replace(row, setting="toy_0") for row in study()]
    plan = plan_of(rows)
    for order in (["toy_0", "toy_a"], ["toy_a", "toy_0"]):
        plan = replace(plan, benchmarks={setting: {} for setting in order})
        found = summarise(plan, scores_by_cell(tmp_path, rows))
        assert list(dict.fromkeys(cell.setting for cell in found)) == order
        greedy = [cell.method for cell in found if cell.measure == "greedy"]
        assert greedy == 2 * ["none", "grpo", "mc-grpo", "grpo-plus1", "grpo", "mc-grpo"]
