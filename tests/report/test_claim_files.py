"""The project's claims by the paper's numbers, and the files that the command writes."""

import csv
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from claim_rows import pair, scores_of

from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.contrasts import contrasts, of_printed
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.records import Contrast
from mcgrpo.files import write_csv
from mcgrpo.report.claims.judge import judge, main

ROOT = Path(__file__).parents[2]
CLAIMS, PUBLISHED = ROOT / "config/claims.yaml", ROOT / "config/published.csv"
OURS = read_claims(CLAIMS)
PRINTED = judge(OURS, of_printed(OURS, as_cells(read_published(PUBLISHED))), "published")

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
    assert {name: kind for name, kind in found.items() if kind in ("holds", "fails", "inconclusive")} == BY_THE_PAPER
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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The project's claims over the paper's numbers and a study of one toy setting."""
    folder = tmp_path_factory.mktemp("claims")
    scores = scores_of(*(pair(0.05, 0.01, budget=g, base=0.5 + g / 100) for g in (2, 4, 8)))
    write_csv(folder / "contrasts.csv", Contrast, contrasts(OURS, scores, {key.without_measure for key in scores}))
    command = ["--claims", str(CLAIMS), "--published", str(PUBLISHED), "--contrasts", str(folder / "contrasts.csv")]
    main([*command, "--output", str(folder), "--title", "Toys & 100% of_them"])
    return folder


def test_the_command_writes_a_row_for_each_claim_source_setting_and_comparison(files):
    with (files / "claims.csv").open() as file:
        rows = list(csv.DictReader(file))
    mine = [row for row in rows if row["claim"] == "grpo-gains" and row["source"] == "ours"]
    assert [(row["kind"], row["setting"]) for row in mine] == [("single", "toy"), ("single", "toy"), ("primary", "")]
    numbers = [float(mine[0][name]) for name in ("value", "low", "high")]
    assert numbers == pytest.approx([5.0, 4.0, 6.0], abs=1e-4)
    assert {row["threshold"] for row in mine} == {"> 0"}
    assert {row["verdict"] for row in mine} == {"holds"}
    printed = [row for row in rows if row["claim"] == "grpo-gains" and row["source"] == "published"]
    assert len(printed) == 10 + 2 + 1 and {row["low"] for row in printed} == {""}


def test_the_list_and_the_table_give_every_claim_its_verdicts(files, capsys):
    main(["--claims", str(CLAIMS), "--published", str(PUBLISHED), "--output", str(files / "alone")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:-2]] == [ruling.claim.id for ruling in PRINTED]
    assert ["gain-at-4", "fails"] in [line.split() for line in lines]
    assert lines[-1] == "By the paper's own numbers: 14 hold, 13 fail, 12 not measured, 4 not judged."
    text = (files / "claims.md").read_text()
    (row,) = [line for line in text.splitlines() if "`gain-at-4`" in line]
    assert "of 5, 4 hold, 1 fail; worst: qwen2.5-7b-math/math500" in row
    assert "+2.20 points, claimed ≥ 2.35 and ≤ 2.67" in row
    assert "**fails**: toy/sums: gain of MC-GRPO at G=4 is +5.0 [+4.0, +6.0] points" in row
    assert "Verdicts are corrected within a claim, not for the number of claims." in text
    (tested, wrong) = re.search(
        r"of (\d+) tested claims, up to ([\d.]+) are expected to be, by chance\.", text
    ).groups()
    assert float(wrong) == pytest.approx(0.05 * int(tested), abs=0.05)
    assert "By this study" not in (files / "alone/claims.md").read_text()


def test_missing_contrasts_end_in_one_line(tmp_path):
    command = ["--claims", str(CLAIMS), "--published", str(PUBLISHED), "--output", str(tmp_path)]
    with pytest.raises(SystemExit, match=r"error: .*none.csv: no such file"):
        main([*command, "--contrasts", str(tmp_path / "none.csv")])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_table_compiles(files):
    wrapper = r"\documentclass[a4paper]{article}\usepackage[margin=20mm]{geometry}\usepackage{booktabs,longtable}"
    wrapper += r"\usepackage[table]{xcolor}"
    (files / "all.tex").write_text(wrapper + r"\begin{document}\input{claims.tex}\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=files, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert r"Overfull \hbox" not in done.stdout
