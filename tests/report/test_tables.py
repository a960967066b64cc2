"""Tables as they are printed: one golden study in Markdown and LaTeX, and the laws that every number keeps."""

import os
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest
from answers import answer_of, contrasts_of, plan_of
from cells import cell, flip, frame, seconds, study
from claim_rows import pair, scores_of
from synthetic import cell_signals

from mcgrpo.analyse.records import CellSignal, Contrast
from mcgrpo.files import write_csv, write_json
from mcgrpo.report.tables import accuracy, signal
from mcgrpo.report.tables.write import main, write_tables

GOLDEN = Path(__file__).parents[1] / "data/report"
PLANS = {plan.name: plan for plan in accuracy.PLANS}
PLAN, SCORES = plan_of(["toy_a"], baselines=("grpo",)), scores_of(pair(0.05, 0.01, setting="toy_a"))
ANSWER = answer_of(PLAN, SCORES)
TRAIN = {"benchmark": "train", "role": "train", "half": None, "n": 40}
EQUAL = {"": -0.02, "_generations": 3, "_low": -0.03, "_high": -0.01, "_seeds": 2, "_verdict": "worse"}
STABLE = {"worst": 0.3, "collapsed": 1 / 3, **{f"same_rollouts{name}": value for name, value in EQUAL.items()}}
ROLLOUTS = [("grpo", 2, 640, "default"), ("mc-grpo", 2, 960, "default"), ("grpo", 3, 960, "default"),
            ("grpo", 2, 640, "rival-sign")]  # fmt: skip


def printed(table):
    """The texts of a table, a dictionary for each line."""
    return [{name: str(entry) for name, entry in row.items()} for row in table.sparse.to_dict("records")]


def shown(name, folder, rows):
    """The lines and the caption of a table of accuracies."""
    table = accuracy.table(PLANS[name], frame(folder, rows))
    return printed(table), table.caption


def golden(name, text):
    """Compares a text with its file in tests/data; with RENEW_GOLDEN=1, writes that file."""
    if os.environ.get("RENEW_GOLDEN"):
        (GOLDEN / name).write_text(text)
    assert text == (GOLDEN / name).read_text()


def everything():
    """The study of `cells`, and rows of every other table: published numbers, variants, flips, rivals, stability."""
    paper = {"published": 0.8354, "published_difference": 0.0462, "difference_excludes_published": True}
    change, gain = (-0.04, -0.05, -0.03), (0.1, 0.05, 0.15)
    far, other = {"benchmark": "chains", "role": "out"}, {"setting": "toy_b"}
    for row in study():
        is_median = (row.method, row.num_generations, row.measure) == ("mc-grpo", 2, "avg@4")
        yield replace(row, **STABLE) if is_median else row
    yield from (cell("grpo", 2, 0.5, published=0.7892, **far), cell("mc-grpo", 2, 0.6, gain=gain, **far, **paper))
    for budget, excludes in ((4, False), (8, None)):
        yield cell("mc-grpo", budget, 0.6, gain=gain, **far, **paper | {"difference_excludes_published": excludes})
    yield from (cell("grpo", 2, 0.5, published=0.79, variant="composite"), cell("dapo", 2, 0.5, **other))
    yield cell("mc-dapo", 2, 0.5, gain=(0.0, -0.004, 0.005), seeds=2, **other)
    yield cell("mc-dapo", 4, 0.6, gain=gain, difference_seeds=2, **other)
    yield from (seconds("grpo", 2, published=1316.0, **other), seconds("mc-grpo", 2, 10.0, published=1521.0, **other))
    yield from (cell("grpo", 4, 0.4, variant=f"flip-{rate}", change=change) for rate in ("0.4", "exact-0.25", "0.05"))
    yield cell("mc-grpo", 2, 0.6, variant="released", gain=gain, change=(0.1, -0.01, 0.2))
    yield from (
        cell("grpo", 2, 0.45, variant="rival-sign", change=change, measure=name) for name in ("greedy", "avg@4")
    )
    yield from (cell("grpo", 2, variant="rival-none", measure="avg@4"), cell("grpo", 3, 0.54, measure="avg@4"))
    for method, budget, rollouts, variant in ROLLOUTS:
        yield cell(method, budget, rollouts, variant=variant, measure="rollouts", **TRAIN)
    numbers = {"frac_effective": 0.2512, "grad_norm": 528.4, "frac_grad_clipped": 1.0, "clip_ratio": 0.00125}
    yield from (cell("mc-grpo", 2, value, measure=name, **TRAIN) for name, value in numbers.items())
    for baseline in ("mean", "median"):
        for how in ("exact", "sampled"):
            yield flip(f"{baseline}/oracle-mean/zeros/k2/{how}", 0.2 + (how == "sampled") * 0.01)


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
        shutil.copyfile(GOLDEN / name, tmp_path / name)
    (tmp_path / "all.tex").write_text(wrapper)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "Overfull" not in done.stdout, done.stdout[-2000:]


def test_a_missing_cell_says_so_and_is_never_zero(tmp_path):
    rows, _ = shown("main", tmp_path, study())
    numbers = ("Greedy (%)", "Gain, greedy", "Sampled (%)", "Gain, sampled", "Seeds")
    assert [rows[2][name] for name in numbers] == ["missing"] * 4 + ["0/3"]
    assert "Nothing of this table has been run." in shown("main", tmp_path, [cell("grpo", 2)])[1]


def test_the_caption_states_seeds_problems_intervals_and_the_margin(tmp_path):
    text = shown("main", tmp_path, study())[1]
    for part in ("over seeds and problems;", "100 problems on sums", "avg@4", "3 seeds planned, 0 to 3 there"):
        assert part in text
    assert "lies within 1 point by two one-sided tests at 5%" in text and "Published" not in text
    one = [cell("none", 0, 0.1), *(cell(m, 2, 0.5, planned=1, seeds=1) for m in ("grpo", "mc-grpo"))]
    assert "over problems only: there is one seed; 100 problems on sums; 1 seed." in shown("main", tmp_path, one)[1]
    more = shown("main", tmp_path, [*one, cell("grpo", 4, 0.5)])[1]
    assert "over seeds and problems (over problems only where there is one seed)" in more


def test_the_control_keeps_to_where_it_is_planned_and_no_gain_is_blank(tmp_path):
    assert [row["G"] for row in shown("control", tmp_path, study())[0]] == ["", "2", "2+1", "2+1"]
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


def test_the_predicted_gain_stands_beside_the_measured_one_and_says_whether_it_predicts(tmp_path):
    later = [
        replace(cell_signals()[0], source=f"toy_a/grpo/G8/default/steps {steps}", predicted=predicted)
        for steps, predicted in (("1-6", -0.4), ("55-60", 0.1))
    ]
    write_csv(tmp_path / "signals.csv", CellSignal, [*cell_signals(), *later])
    signal.main(["--signals", str(tmp_path / "signals.csv"), "--output", str(tmp_path), "--title", "Toys"])
    golden("signal.md", (tmp_path / "signal.md").read_text())
    gains = zip(cell_signals(), (0.01, -0.03, 0.02, -0.01), strict=True)
    unsure = signal.table(signals(*(replace(each, gain=gain, predicted=-0.004) for each, gain in gains)))
    assert printed(unsure)[0]["Predicted"] == "+0%" and "Rank correlation" not in unsure.caption
    gains = zip(cell_signals(), (0.01, -0.03, 0.02, -0.01), strict=True)
    assert "does not predict" in signal.agreements(signals(*(replace(each, gain=gain) for each, gain in gains)))


def test_a_gain_of_one_seed_is_not_called_worse():
    """Its interval, over problems only, excludes 0, and it has no verdict."""
    first, *_ = cell_signals()
    tones = [
        signal.table(signals(row)).frame["Measured"].iloc[0].tone for row in (first, replace(first, gain_verdict=None))
    ]
    assert tones == ["below", ""]


@pytest.mark.parametrize("rows", [[], [replace(cell_signals()[0], variant="mad-zero-std", predicted=None)]])
def test_a_study_without_rollouts_says_that_it_has_no_signal(tmp_path, rows):
    write_csv(tmp_path / "signals.csv", CellSignal, rows)
    signal.main(["--signals", str(tmp_path / "signals.csv"), "--output", str(tmp_path)])
    assert all(signal.ABSENT in (tmp_path / name).read_text() for name in ("signal.md", "signal.tex"))


def command_of(folder):
    write_json(folder / "plan.json", PLAN)
    write_csv(folder / "contrasts.csv", Contrast, contrasts_of(PLAN, SCORES))
    files = {"plan": "plan.json", "summary": "summary.csv", "contrasts": "contrasts.csv", "output": "out"}
    return [part for name, file in files.items() for part in (f"--{name}", str(folder / file))]


def test_the_command_names_tables_that_are_not_planned_and_ends_in_one_line_without_any(tmp_path):
    frame(tmp_path, study())
    main(command_of(tmp_path))
    absent = "Tables without a cell in this study: dapo, dr_grpo, ood, composite, injected-flips, variants, rivals, "
    assert all(f"{absent}sign-flips." in (tmp_path / "out" / name).read_text() for name in ("tables.md", "tables.tex"))
    frame(tmp_path, [row for row in study() if row.role == "train"])
    with pytest.raises(SystemExit, match="neither an accuracy"):
        main(command_of(tmp_path))
    (tmp_path / "summary.csv").write_text("setting\nx\n")
    with pytest.raises(SystemExit, match=r"summary\.csv: column"):
        main(command_of(tmp_path))
