"""Tables as they are printed: one golden study in Markdown and LaTeX, and the laws that every number keeps."""

import shutil
import subprocess
from dataclasses import asdict, replace

import pandas as pd
import pytest
from answers import answer_of, plan_of
from cells import cell, flip, frame, seconds, study
from claim_rows import pair, scores_of
from forked import ROOT
from golden import FOLDER, golden
from report_study import cell_signals, everything, write_results

from mcgrpo.report.tables import accuracy, flip_rates, signal
from mcgrpo.report.tables.__main__ import main, write_tables
from mcgrpo.report.tables.frame import Table, write
from mcgrpo.report.wording import Printed
from mcgrpo.study.planned import write_plan

PLANS = {plan.name: plan for plan in accuracy.PLANS}
PLAN, SCORES = plan_of(["toy_a"], baselines=("grpo",)), scores_of(pair(0.05, 0.01, setting="toy_a"))
ANSWER = answer_of(PLAN, SCORES)


def printed(table):
    """The texts of a table, a dictionary for each line."""
    return [{name: str(entry) for name, entry in row.items()} for row in table.sparse.to_dict("records")]


def shown(name, folder, rows):
    """The lines and the caption of a table of accuracies."""
    table = accuracy.table(PLANS[name], frame(folder, rows))
    return printed(table), table.caption


def test_the_golden_study(tmp_path):
    write_tables(frame(tmp_path, everything()), ANSWER, tmp_path, "Toys & 100% of_them")
    for name in ("tables.md", "tables.tex", "headline.md", "timings.md"):
        golden(name, (tmp_path / name).read_text())
    tidy = pd.read_csv(tmp_path / "tables.csv", keep_default_na=False, na_values=[""])
    rows = tidy[(tidy.table == "main") & (tidy.method == "mc-grpo") & (tidy.num_generations == 2)]
    assert rows.set_index("measure").difference.to_dict() == {"greedy": -0.06, "avg@4": 0.05}


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_latex_compiles_where_it_stands_and_fits(tmp_path):
    wrapper = r"\documentclass{article}\usepackage[margin=15mm,landscape]{geometry}\usepackage[table]{xcolor}"
    wrapper += (
        r"\usepackage{booktabs,longtable,array}\begin{document}\input{tables.tex}\input{claims.tex}\end{document}"
    )
    for name in ("tables.tex", "claims.tex"):
        shutil.copyfile(FOLDER / name, tmp_path / name)
    (tmp_path / "all.tex").write_text(wrapper)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "Overfull" not in done.stdout, done.stdout[-2000:]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_first_screen_fits_the_page_of_the_report(tmp_path):
    """Four comparisons of the longest verdict, in the document of a study."""
    wide = Printed("−12.4", "[−23.3, +10.4]", "inconclusive", "(12.5)")
    columns = ["MC-GRPO − GRPO+1", "MC-GRPO − GRPO"]
    columns += [f"{each}, greedy" for each in columns]
    row = {"Setting": "qwen2.5-math-1.5b-math", "Benchmark": "math500", "G": "2"} | dict.fromkeys(columns, wide)
    write(Table("answer", "Wide.", pd.DataFrame([row | {"Seeds": "5"}])), tmp_path / "tables", "", "")
    shutil.copyfile(ROOT / "reports/reproduction.tex", tmp_path / "all.tex")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "Overfull" not in done.stdout, done.stdout[-2000:]


def test_the_caption_states_what_intervals_are_over_and_what_has_not_been_run(tmp_path):
    one = [cell("none", 0, 0.1), *(cell(m, 2, 0.5, planned=1, seeds=1) for m in ("grpo", "mc-grpo"))]
    assert "over problems only: there is one seed; 100 problems on sums; 1 seed." in shown("main", tmp_path, one)[1]
    more = shown("main", tmp_path, [*one, cell("grpo", 4, 0.5)])[1]
    assert "over seeds and problems (over problems only where there is one seed)" in more
    assert "Nothing of this table has been run." in shown("main", tmp_path, [cell("grpo", 2)])[1]


def test_the_caption_says_where_a_context_cut_completions(tmp_path):
    rows = [cell(m, 2, 0.5) for m in ("grpo", "mc-grpo")]

    def tokens(fit, **place):
        pair = {"max_new_tokens": fit, "asked_new_tokens": 8000}
        return [cell("grpo", 2, float(value), measure=name, half=None, **place) for name, value in pair.items()]

    elsewhere = tokens(2000, benchmark="others")  # of no cell of the table
    caption = shown("main", tmp_path, [*rows, *tokens(3555), *elsewhere])[1]
    assert caption.endswith("as long as the model's context leaves: toy_a on sums: 3,555 of 8,000 asked (tokens).")
    for unlimited in ([], tokens(8000)):
        assert "context" not in shown("main", tmp_path, [*rows, *unlimited])[1]


def test_the_caption_of_sign_flips_says_so_of_its_rollouts(tmp_path):
    rates = [flip(f"mean/oracle-mean/strict/k{k}", 0.1) for k in (2, 4)]
    tokens = [flip(name, value) for name, value in {"max_new_tokens": 40.0, "asked_new_tokens": 64.0}.items()]
    of_evaluation = [replace(row, role="in") for row in tokens]
    found = flip_rates.table(frame(tmp_path, [*rates, *tokens]))
    assert found.caption.endswith("leaves: toy_a on sums: 40 of 64 asked (tokens).") and len(found.frame) == 1
    assert "context" not in flip_rates.table(frame(tmp_path, [*rates, *of_evaluation])).caption


def test_what_is_not_compared_has_no_gain(tmp_path):
    alone = replace(cell("mc-grpo", 2, 0.4, variant="mad-zero-skip", change=(-0.1, -0.2, -0.05)), baseline=None)
    *_, line = shown("variants", tmp_path, [cell("mc-grpo", 2, 0.5), alone])[0]
    assert (line["Gain, greedy"], line["Change, greedy"]) == ("", "−10.0 [−20.0, −5.0] worse")


def test_times_change_nothing_but_the_timings(tmp_path):
    files = []
    for second, name in ((23.0, "a"), (29.0, "b")):
        rows = [row for row in study() if row.role != "train"] + [seconds("mc-grpo", 2, second)]
        write_tables(frame(tmp_path, rows), ANSWER, tmp_path / name)
        files.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert sorted(name for name in files[0] if files[0][name] != files[1][name]) == ["timings.md", "timings.tex"]


def signals(*rows):
    return pd.DataFrame([asdict(each) for each in rows])


def command(folder, cells, signals=()):
    """The command over these cells, with the answer of `PLAN`; returns its folder."""
    write_results(folder, cells, signals=signals)
    write_plan(folder / "plan.json", PLAN)
    main(["--results", str(folder), "--output", str(folder / "out"), "--title", "Toys"])
    return folder / "out"


def test_the_predicted_gain_stands_beside_the_measured_one_and_says_whether_it_predicts(tmp_path):
    later = [
        replace(cell_signals()[0], source=f"toy_a/grpo/G8/default/steps {steps}", predicted=predicted)
        for steps, predicted in (("1-6", -0.4), ("55-60", 0.1))
    ]
    golden("signal.md", (command(tmp_path, study(), [*cell_signals(), *later]) / "signal.md").read_text())
    mixed = [replace(row, gain=gain) for row, gain in zip(cell_signals(), (0.01, -0.03, 0.02, -0.01), strict=True)]
    assert "is not shown to predict" in signal.agreements(signals(*mixed))
    unsure = signal.table(signals(*(replace(each, predicted=-0.004) for each in mixed)))
    assert printed(unsure)[0]["Predicted"] == "+0%" and "Rank correlation" not in unsure.caption


def test_a_gain_of_one_seed_is_not_called_worse():
    """Its interval, over problems only, excludes 0, and it has no verdict."""
    first, *_ = cell_signals()
    rows = (first, replace(first, gain_verdict=None))
    assert [signal.table(signals(row)).frame["Measured"].iloc[0].tone for row in rows] == ["below", ""]


UNUSED = [
    replace(cell_signals()[0], variant="mad-zero-std", predicted=None),
    replace(cell_signals()[0], source="toy_b/grpo/G8/default/steps 1-6"),  # of trainings; no untrained model of theirs
]


@pytest.mark.parametrize("rows", [[], UNUSED[:1], UNUSED[1:]])
def test_a_study_without_rollouts_says_that_it_has_no_signal(tmp_path, rows):
    folder = command(tmp_path, study(), rows)
    assert all(signal.ABSENT in (folder / name).read_text() for name in ("signal.md", "signal.tex"))


def test_the_command_names_tables_that_are_not_planned_and_ends_in_one_line_without_any(tmp_path):
    folder = command(tmp_path, study())
    absent = "Tables without a cell in this study: dapo, dr_grpo, ood, composite, injected-flips, variants, rivals, "
    assert all(
        f"{absent}sharpening, grading, sign-flips." in (folder / name).read_text()
        for name in ("tables.md", "tables.tex")
    )
    with pytest.raises(SystemExit, match="neither an accuracy"):
        command(tmp_path, [row for row in study() if row.role == "train"])
    (tmp_path / "summary.csv").write_text("setting\nx\n")
    with pytest.raises(SystemExit, match=r"summary\.csv has changed since"):
        main(["--results", str(tmp_path), "--output", str(folder)])
