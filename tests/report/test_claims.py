import csv
import math
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from claim_rows import cell, claim, claims_of, frame, gain, ruled
from hypothesis import given
from hypothesis import strategies as st

from mcgrpo.files import write_csv
from mcgrpo.published import as_cells, read_published
from mcgrpo.records import Cell
from mcgrpo.report.claim_language import Comparison, Term, read_claims
from mcgrpo.report.claim_tables import evidence
from mcgrpo.report.claims import Value, combined, judge, main, verdict

ROOT = Path(__file__).parents[2]
CLAIMS, PUBLISHED = ROOT / "config/claims.yaml", ROOT / "config/published.csv"
PRINTED = judge(read_claims(CLAIMS), as_cells(read_published(PUBLISHED)), "published")

BY_THE_PAPER = {
    "gap-within-1": "fails",
    "few-rollouts-cost-accuracy": "holds",
    "rollout-negligible": "fails",
    "gap-narrowed": "fails",
    "qwen3-accuracies": "holds",
    "near-grpo-8": "fails",
    "grpo-gains": "holds",
    "dapo-gains": "holds",
    "dr-grpo-gains": "fails",
    "up-to-4.62-on-gsm8k": "holds",
    "up-to-4.6-on-math500": "holds",
    "gain-at-4": "fails",
    "gains-largest-at-small-g": "fails",
    "gains-diminish-grpo": "fails",
    "gains-diminish-dapo": "holds",
    "gains-diminish-dr-grpo": "fails",
    "competitive-at-8": "holds",
    "never-worse": "fails",
    "takes-longer": "holds",
    "time-marginal": "fails",
    "time-modest": "holds",
    "ood": "holds",
    "composite-gains": "holds",
    "composite-gains-diminish": "fails",
    "median-beats-extra-rollout": "holds",
    "extra-rollout-explains-little": "holds",
    "extra-rollout-gains-nothing": "fails",
}
"""Every claim that the printed numbers can judge."""


def test_what_the_printed_numbers_say_of_every_claim():
    found = {ruling.claim.id: ruling.verdict for ruling in PRINTED}
    assert {
        name: kind for name, kind in found.items() if kind in ("holds", "fails", "indistinguishable")
    } == BY_THE_PAPER
    for ruling in PRINTED:
        assert (ruling.verdict == "not judged") == bool(ruling.claim.unjudged)


def test_the_gap_between_2_and_8_rollouts_as_printed():
    (gaps,) = [ruling.findings for ruling in PRINTED if ruling.claim.id == "gap-within-1"]
    beyond = {(row.setting, row.comparison.split()[0]): row.value for row in gaps if row.verdict == "fails"}
    assert beyond == {
        ("qwen3-1.7b-gsm8k", "MC-GRPO"): 1.06,
        ("llama-3.2-3b-gsm8k", "MC-GRPO"): 1.09,
        ("qwen2.5-math-1.5b-math", "MC-GRPO"): 1.98,
        ("llama-3.2-3b-gsm8k", "MC-DAPO"): 2.60,
        ("qwen2.5-math-1.5b-math", "MC-DAPO"): 4.80,
        ("qwen3-1.7b-gsm8k", "MC-DR-GRPO"): 1.97,
        ("qwen2.5-math-1.5b-math", "MC-DR-GRPO"): 3.80,
        ("qwen2.5-7b-math", "MC-DR-GRPO"): 1.40,
    }


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        ((0.02, 0.01), "holds"),
        ((0.02, 0.03), "indistinguishable"),
        ((-0.02, 0.01), "fails"),
        ((0.0, 0.0), "fails"),
        ((0.01, 0.01), "indistinguishable"),
    ],
)
def test_a_gain_is_judged_by_its_own_paired_interval(tmp_path, difference, expected):
    mine = cell("mc-grpo", difference=difference, half=0.3)
    assert ruled(tmp_path, claim(gain(above=0)), mine).verdict == expected


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ({"at_least": 1, "at_most": 3}, "holds"),
        ({"at_least": 2.5, "at_most": 4}, "indistinguishable"),
        ({"at_least": 3.5, "at_most": 9}, "fails"),
        ({"within": 3}, "holds"),
        ({"within": 2}, "indistinguishable"),
        ({"within": 1}, "fails"),
        ({"below": 3}, "holds"),
        ({"below": 2.5}, "indistinguishable"),
        ({"below": 1.5}, "fails"),
        ({"at_most": 1.5}, "indistinguishable"),
    ],
)
def test_bounds(tmp_path, bound, expected):
    assert ruled(tmp_path, claim(gain(**bound)), cell("mc-grpo", difference=(0.02, 0.005))).verdict == expected


def test_half_widths_combine_in_quadrature(tmp_path):
    gap = {
        "within": 1,
        "terms": [
            {"method": "mc-grpo", "num_generations": 8},
            {"weight": -1, "method": "mc-grpo", "num_generations": 2},
        ],
    }
    cells = cell("mc-grpo", 8, 0.62, 0.03), cell("mc-grpo", 2, 0.58, 0.04)
    (row,) = ruled(tmp_path, claim(gap), *cells).findings
    assert (row.value, row.low, row.high, row.seeds) == (4.0, -1.0, 9.0, 5)
    assert (row.comparison, row.threshold) == ("MC-GRPO at G=8 − MC-GRPO at G=2", "within ±1")


def test_an_uneven_interval_is_turned_round_by_a_negative_weight():
    term = Term("grpo", 2, weight=-2)
    value = combined(Comparison((term,)), [Value(0.5, 0.4, 0.53, 3, "problems")])
    assert value == Value(-100.0, -106.0, -80.0, 3, "problems")


def test_a_ratio_of_seconds_has_the_relative_half_widths(tmp_path):
    train = {"role": "train", "measure": "seconds"}
    ratio = {
        "at_most": 1.5,
        "ratio": {
            "numerator": {"method": "mc-grpo", "num_generations": 4, **train},
            "denominator": {"method": "grpo", "num_generations": 4, **train},
        },
    }
    as_train = {"role": "train", "benchmark": "train", "measure": "seconds", "over": "seeds"}
    cells = cell("mc-grpo", 4, 120.0, 3.6, **as_train), cell("grpo", 4, 100.0, 4.0, **as_train)
    ruling = ruled(tmp_path, claim(ratio), *cells)
    (row,) = ruling.findings
    half = 1.2 * math.hypot(0.03, 0.04)
    assert (row.value, row.low, row.high) == pytest.approx((1.2, 1.2 - half, 1.2 + half))
    assert ruling.verdict == "holds"
    assert "is 1.2 [1.14, 1.26] times, claimed ≤ 1.5, 5 seeds" in evidence(ruling)


def test_rewards_are_not_turned_into_points(tmp_path):
    of = {"role": "train", "measure": "reward"}
    row = claim({"above": 0, "terms": [{"method": "mc-grpo", "num_generations": 2, "field": "difference", **of}]})
    mine = cell("mc-grpo", difference=(0.25, 0.1), benchmark="train", **of)
    (finding,) = ruled(tmp_path, row, mine).findings
    assert (finding.value, finding.unit) == (0.25, "reward")


def test_all_settings_must_hold_and_one_that_fails_is_enough(tmp_path):
    good, unsure, bad = (
        cell("mc-grpo", difference=pair, setting=name)
        for name, pair in (("a", (0.03, 0.01)), ("b", (0.0, 0.01)), ("c", (-0.03, 0.01)))
    )
    row = claim(gain(above=0))
    assert ruled(tmp_path, row, good).verdict == "holds"
    assert ruled(tmp_path, row, good, unsure).verdict == "indistinguishable"
    assert ruled(tmp_path, row, good, unsure, bad).verdict == "fails"
    some = row | {"quantifier": "some"}
    assert ruled(tmp_path, some, good, unsure, bad).verdict == "holds"
    assert ruled(tmp_path, some, unsure, bad).verdict == "indistinguishable"
    assert ruled(tmp_path, some, bad).verdict == "fails"


def test_every_comparison_must_hold_in_the_same_setting_where_some_is_enough(tmp_path):
    row = claim(gain(2, above=0), gain(4, above=0), quantifier="some")
    up, down = (0.03, 0.01), (-0.03, 0.01)
    apart = [
        cell("mc-grpo", budget, difference=pair, setting=setting)
        for setting, pairs in (("a", (up, down)), ("b", (down, up)))
        for budget, pair in zip((2, 4), pairs, strict=True)
    ]
    assert ruled(tmp_path, row, *apart).verdict == "fails"
    assert ruled(tmp_path, row, *apart[:1]).verdict == "not measured"


def test_a_claim_is_not_measured_until_each_comparison_is_and_fails_before(tmp_path):
    row = claim(gain(2, above=0), gain(4, above=0))
    good, bad = cell("mc-grpo", difference=(0.03, 0.01)), cell("mc-grpo", difference=(-0.03, 0.01))
    ruling = ruled(tmp_path, row, good)
    assert ruling.verdict == "not measured"
    assert "not measured anywhere: gain of MC-GRPO at G=4" in evidence(ruling)
    assert ruled(tmp_path, row, bad).verdict == "fails"
    assert ruled(tmp_path, row).verdict == "not measured"


def test_a_setting_without_a_term_is_named_and_the_others_are_judged(tmp_path):
    gap = {
        "above": 0,
        "terms": [{"method": "grpo", "num_generations": 8}, {"weight": -1, "method": "grpo", "num_generations": 2}],
    }
    planned = [cell("grpo", g, setting=name, half=None, seeds=0) for name, g in (("b", 8), ("c", 2), ("c", 8))]
    cells = [cell("grpo", 8, 0.9, setting="a"), cell("grpo", 2, 0.1, setting="a"), cell("grpo", 2, setting="b")]
    empty = frame(*planned).assign(mean=None)
    (ruling,) = judge(claims_of(tmp_path, claim(gap)), pd.concat([frame(*cells), empty]), "ours")
    assert ruling.verdict == "holds"
    assert "not measured in b/sums, c/sums" in evidence(ruling)


def test_a_claim_about_named_settings_is_taken_nowhere_else(tmp_path):
    row = claim(gain(above=0), settings=["a"])
    cells = [cell("mc-grpo", difference=(0.03, 0.01), setting=name) for name in ("a", "b")]
    assert [finding.setting for finding in ruled(tmp_path, row, *cells).findings] == ["a"]
    assert ruled(tmp_path, row, cells[1]).verdict == "not measured"


def test_every_benchmark_of_a_role_counts(tmp_path):
    row = claim(
        {"above": 0, "terms": [{"method": "mc-grpo", "num_generations": 2, "role": "out", "field": "difference"}]}
    )
    out = {"role": "out"}
    cells = [
        cell("mc-grpo", difference=(0.03, 0.01), benchmark="x", **out),
        cell("mc-grpo", difference=(-0.03, 0.01), benchmark="y", **out),
        cell("mc-grpo", difference=(0.03, 0.01), benchmark="z"),
    ]
    ruling = ruled(tmp_path, row, *cells)
    assert [(finding.benchmark, finding.verdict) for finding in ruling.findings] == [("x", "holds"), ("y", "fails")]
    assert "toy/y: gain of MC-GRPO at G=2 is −3.0 [−4.0, −2.0] points" in evidence(ruling)


def test_one_seed_says_so_and_without_an_interval_nothing_is_claimed(tmp_path):
    row = claim({"above": 0, "terms": [{"method": "grpo", "num_generations": 2}]})
    one = ruled(tmp_path, row, cell("grpo", 2, 0.5, seeds=1, over="problems"))
    assert one.verdict == "holds"
    assert evidence(one).endswith("1 seed; one seed: interval over problems only.")
    none = ruled(tmp_path, row, cell("grpo", 2, 0.5, half=None, seeds=1))
    assert none.verdict == "indistinguishable"
    assert "without an interval nothing is claimed" in evidence(none)
    assert ruled(tmp_path, row, cell("grpo", 2, 0.5, half=None), source="published").verdict == "holds"


def test_a_change_is_to_the_default_variant(tmp_path):
    row = claim(
        {"at_most": -3, "terms": [{"method": "grpo", "num_generations": 8, "variant": "flip-0.05", "field": "change"}]}
    )
    flipped = cell("grpo", 8, variant="flip-0.05", change=(-0.04, 0.005))
    ruling = ruled(tmp_path, row, flipped, cell("grpo", 8))
    assert ruling.verdict == "holds"
    assert "change of GRPO at G=8 (flip-0.05) is −4.0 [−4.5, −3.5] points, claimed ≤ −3" in evidence(ruling)


BOUND = st.floats(-50, 50)


@given(
    value=st.floats(-50, 50),
    half=st.floats(0, 20),
    low=BOUND,
    width=st.floats(0, 40),
    wider=st.floats(0, 30),
    is_open=st.booleans(),
)
def test_a_looser_bound_never_turns_holds_or_a_tighter_one_fails(value, half, low, width, wider, is_open):
    def at(a, b):
        comparison = Comparison((Term("grpo", 2),), low=a, high=b, low_open=is_open, high_open=is_open)
        return verdict(comparison, Value(value, value - half, value + half, 3, "seeds"), "ours")

    tight, loose = at(low, low + width), at(low - wider, low + width + wider)
    order = ["fails", "indistinguishable", "holds"]
    assert order.index(tight) <= order.index(loose)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.2), st.floats(-2, 2)), min_size=1, max_size=4))
def test_an_interval_is_no_narrower_than_any_terms_and_no_wider_than_their_sum(terms):
    comparison = Comparison(tuple(Term("grpo", 2, weight=weight) for *_, weight in terms))
    value = combined(comparison, [Value(mean, mean - half, mean + half, 3, "seeds") for mean, half, _ in terms])
    halves = [100 * abs(weight) * half for _, half, weight in terms]
    assert max(halves) - 1e-6 <= value.high - value.value <= sum(halves) + 1e-6
    assert value.high - value.value == pytest.approx(value.value - value.low, abs=1e-6)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The project's claims over the paper's numbers and a study of one toy setting."""
    folder = tmp_path_factory.mktemp("claims")
    cells = [cell("grpo", g, 0.5 + g / 100) for g in (2, 4, 8)]
    cells += [cell("mc-grpo", g, 0.55 + g / 100, difference=(0.05, 0.01)) for g in (2, 4, 8)]
    write_csv(folder / "summary.csv", Cell, cells)
    command = ["--claims", str(CLAIMS), "--published", str(PUBLISHED), "--summary", str(folder / "summary.csv")]
    main([*command, "--output", str(folder), "--title", "Toys & 100% of_them"])
    return folder


def test_the_command_writes_a_row_for_each_claim_source_setting_and_comparison(files):
    with (files / "claims.csv").open() as file:
        rows = list(csv.DictReader(file))
    mine = [row for row in rows if row["claim"] == "grpo-gains" and row["source"] == "ours"]
    assert [(row["setting"], row["value"], row["low"], row["high"], row["threshold"]) for row in mine] == [
        ("toy", "5.0", "4.0", "6.0", "> 0"),
        ("toy", "5.0", "4.0", "6.0", "> 0"),
    ]
    assert {row["verdict"] for row in mine} == {"holds"}
    printed = [row for row in rows if row["claim"] == "grpo-gains" and row["source"] == "published"]
    assert len(printed) == 10 and {row["low"] for row in printed} == {""}


def test_the_list_and_the_table_give_every_claim_its_verdicts(files, capsys):
    main(["--claims", str(CLAIMS), "--published", str(PUBLISHED), "--output", str(files / "alone")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [ruling.claim.id for ruling in PRINTED]
    assert ["gain-at-4", "published:", "fails"] in [line.split() for line in lines]
    text = (files / "claims.md").read_text()
    (row,) = [line for line in text.splitlines() if "`gain-at-4`" in line]
    assert "**fails**: of 5, 4 hold, 1 fail; worst: qwen2.5-7b-math/math500" in row
    assert "+2.20 points, claimed ≥ 2.35 and ≤ 2.67" in row
    assert "**fails**: toy/sums: gain of MC-GRPO at G=4 is +5.0 [+4.0, +6.0] points" in row
    assert "By this study" not in (files / "alone/claims.md").read_text()


def test_a_missing_summary_ends_in_one_line(tmp_path):
    command = ["--claims", str(CLAIMS), "--published", str(PUBLISHED), "--output", str(tmp_path)]
    with pytest.raises(SystemExit, match=r"claims: .*none.csv: no such file"):
        main([*command, "--summary", str(tmp_path / "none.csv")])


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_table_compiles(files):
    wrapper = r"\documentclass[a4paper]{article}\usepackage[margin=20mm]{geometry}\usepackage{booktabs,longtable}"
    wrapper += r"\usepackage[table]{xcolor}"
    (files / "all.tex").write_text(wrapper + r"\begin{document}\input{claims.tex}\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=files, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert r"Overfull \hbox" not in done.stdout
