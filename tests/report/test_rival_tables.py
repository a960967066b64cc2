"""The tables of rivals and of stability, as they are printed."""

import pytest
from cells import cell, frame

from mcgrpo.report.tables import rivals, stability

SAMPLED = {"measure": "avg@2"}
NOT_RUN = cell("grpo", 2, variant="rival-sign", **SAMPLED)
TRAIN = {"benchmark": "train", "role": "train", "half": None, "n": 40}
EQUAL = {
    "same_rollouts_generations": 3,
    "same_rollouts": -0.02,
    "same_rollouts_low": -0.03,
    "same_rollouts_high": -0.01,
    "same_rollouts_seeds": 3,
    "same_rollouts_verdict": "worse",
    "same_rollouts_detectable": 0.01,
}


def trained(method, budget, mean, rollouts, variant="default", **fields):
    yield cell(method, budget, mean, variant=variant, **SAMPLED, **fields)
    yield cell(method, budget, mean + 0.2, variant=variant)  # greedy
    yield cell(method, budget, rollouts, variant=variant, measure="rollouts", **TRAIN)


def printed(module, summary):
    table = module.display(module.select(summary))
    return [dict(zip(table.headings, (entry.text for entry in row), strict=True)) for row in table.rows()], table


@pytest.fixture
def summary(tmp_path):
    change = (-0.05, -0.07, -0.03)
    rows = [
        *trained("grpo", 2, 0.5, 640),
        *trained("mc-grpo", 2, 0.52, 960, gain=(0.02, -0.01, 0.05), **EQUAL),
        *trained("grpo", 2, 0.45, 640, "rival-sign", change=change),
        *trained("grpo", 3, 0.54, 960),
        *trained("grpo", 8, 0.6, 2560),
        *trained("dapo", 2, 0.5, 640),
        *trained("grpo", 2, 0.3, 640, "released", change=change),
        cell("none", 0, 0.2, **SAMPLED),
    ]
    return frame(tmp_path, rows)


def test_rivals_stand_beside_the_methods_at_their_g_and_at_as_many_rollouts(summary):
    rows, table = printed(rivals, summary)
    assert [(row["G"], row["Method"], row["Rollouts"]) for row in rows] == [
        ("2", "GRPO", "640"),
        ("", "MC-GRPO", "960"),
        ("", "sign", "640"),
        ("3", "GRPO", "960"),
    ]
    assert [row["Sampled (%)"].split()[0] for row in rows] == ["50.0", "52.0", "45.0", "54.0"]
    assert rows[1]["Gain at the same G"] == "+2.0 [−1.0, +5.0] inconclusive (3.4)"
    assert rows[1]["Gain at as many rollouts"] == "−2.0 [−3.0, −1.0] worse G=3"
    assert (rows[2]["Gain at the same G"], rows[2]["Gain at as many rollouts"]) == ("−5.0 [−7.0, −3.0] worse", "")
    assert "in sampled accuracy" in table.caption and "100 problems on sums; 3 seeds" in table.caption


def test_fewer_shared_seeds_than_its_own_are_told(tmp_path):
    gain = (0.02, -0.01, 0.05)
    rows = [
        *trained("grpo", 2, 0.5, 640),
        *trained("mc-grpo", 2, 0.52, 960, gain=gain, seeds=3, **EQUAL | {"same_rollouts_seeds": 2}),
        *trained("grpo", 2, 0.45, 640, "rival-sign"),
        *trained("grpo", 3, 0.54, 960),
    ]
    found = printed(rivals, frame(tmp_path, rows))[0][1]
    assert found["Gain at as many rollouts"] == "−2.0 [−3.0, −1.0] worse G=3 (2 shared seeds)"


def test_a_study_without_rivals_has_no_such_table(summary):
    assert rivals.select(summary[~summary.variant.str.startswith("rival-")]).empty


def test_a_rival_that_has_not_been_run_is_missing(tmp_path):
    rows, _ = printed(rivals, frame(tmp_path, [*trained("grpo", 2, 0.5, 640), NOT_RUN]))
    assert rows[1] | {"Setting": "", "Benchmark": "", "G": ""} == dict.fromkeys(rows[1], "") | {
        "Method": "sign",
        "Rollouts": "missing",
        "Sampled (%)": "missing",
        "Gain at the same G": "missing",
        "Seeds": "0/3",
    }


def test_the_worst_seed_stands_beside_the_mean(tmp_path):
    norms = [("frac_effective", 0.2512), ("grad_norm", 528.4), ("frac_grad_clipped", 1.0), ("clip_ratio", 0.00125)]
    rows = [
        *trained("grpo", 2, 0.5, 640, worst=0.48, collapsed=0.0),
        *trained("mc-grpo", 2, 0.5, 960, worst=0.3, collapsed=1 / 3),
        *(cell("mc-grpo", 2, value, measure=name, **TRAIN) for name, value in norms),
        *trained("mc-grpo", 2, 0.5, 960, "mad-zero-unit", worst=0.45, collapsed=0.0),
        *trained("grpo", 2, 0.1, 640, "flip-0.4", worst=0.1, collapsed=1.0),
    ]
    first, second, third = printed(stability, frame(tmp_path, rows))[0]
    assert (first["Method"], first["Collapsed"], first["Gradient norm"]) == ("GRPO", "0 of 3", "missing")
    assert (second["Method"], second["Sampled (%)"], second["Worst seed (%)"]) == ("MC-GRPO", "50.0", "30.0")
    assert (second["Collapsed"], second["Effective rows"], second["Gradient norm"]) == ("1 of 3", "25.1%", "528")
    assert (second["Steps clipped"], second["Ratio clipped"]) == ("100%", "0.125%")
    assert (third["Variant"], third["Worst seed (%)"]) == ("mad-zero-unit", "45.0")


def test_the_name_of_a_benchmark_keeps_its_capitals(tmp_path):
    rows = [*trained("grpo", 2, 0.5, 640, worst=0.48, collapsed=0.0, benchmark="AIME24")]
    caption = printed(stability, frame(tmp_path, rows))[1].caption
    assert ". 100 problems on AIME24; " in caption and "None of these numbers has an interval" in caption
