import shutil
import subprocess

import pandas as pd
import pytest
from study_frames import cell_scores, score, study, summary_of

from mcgrpo.report.headline import headline
from mcgrpo.report.tables import TABLES, main, tidy, write_tables

MAIN, CONTROL = (next(table for table in TABLES if table.name == name) for name in ("main", "control"))
OOD = next(table for table in TABLES if table.name == "ood")


@pytest.fixture
def summary(tmp_path):
    return summary_of(tmp_path, study())


def lines_with(text, *parts):
    return [line for line in text.splitlines() if all(part in line for part in parts)]


def written(folder, summary, title=""):
    write_tables(summary, folder, title)
    return {path.name: path.read_text() for path in folder.iterdir() if path.suffix in (".tex", ".md")}


def test_rows_are_the_grid_with_the_untrained_model_first_and_g_descending(summary):
    rows = tidy(MAIN, summary)
    expected = [("none", 0), ("grpo", 4), ("mc-grpo", 4), ("grpo", 2), ("mc-grpo", 2)]
    assert list(zip(rows.method, rows.num_generations, strict=True)) == expected
    assert rows.greedy_mean.isna().tolist() == [False, False, True, False, False]


def test_the_control_table_keeps_to_where_the_control_ran(summary):
    assert tidy(CONTROL, summary).num_generations.unique().tolist() == [0, 2]
    assert tidy(CONTROL, summary[summary.method != "grpo-plus1"]).empty


def test_a_missing_cell_says_so_and_is_never_zero(tmp_path, summary):
    text = written(tmp_path / "out", summary)["tables.md"]
    (row,) = lines_with(text, "MC-GRPO", "4+1")
    assert [cell.strip() for cell in row.split("|")[3:-1]] == ["MC-GRPO", "4+1", "4", *["missing"] * 4, "0"]


def test_gains_are_coloured_by_their_interval(tmp_path, summary):
    tex = written(tmp_path / "out", summary)["tables.tex"]
    main_row, control_row = lines_with(tex, "MC-GRPO", "2+1")
    assert main_row == control_row
    assert r"\cellcolor{black!8}{\textcolor{red!75!black}{$-$6.0 $\pm$ 0.2}}" in main_row
    assert r"\cellcolor{black!8}{\textcolor{green!45!black}{+5.0 $\pm$ 0.2}}" in main_row
    (plus1,) = lines_with(tex, r"GRPO+1 &")
    assert "cellcolor" not in plus1
    assert plus1.count("indistinguishable") == 2
    assert "textcolor" not in plus1


def test_one_seed_has_a_gain_but_no_colour(tmp_path):
    rows = [score("none", 0, 0, 0.1), score("grpo", 2, 0, 0.5), score("mc-grpo", 2, 0, 0.6)]
    found = written(tmp_path / "out", summary_of(tmp_path, rows))
    assert "+10.0 (one seed)" in found["tables.tex"]
    assert "textcolor" not in found["tables.tex"]
    assert "cannot be told (one seed) from the mean (GRPO): +10.0 points (1 seed)" in found["headline.md"]
    assert "Sampled" not in found["tables.md"]


def test_fewer_shared_seeds_than_seeds_are_told(tmp_path):
    rows = cell_scores("grpo", 2, 0.5)[:2] + cell_scores("mc-grpo", 2, 0.6)
    assert "(2 shared seeds)" in written(tmp_path / "out", summary_of(tmp_path, rows))["tables.md"]


def test_caption_states_seeds_problems_samples_and_title(tmp_path, summary):
    tex = written(tmp_path / "out", summary, "Toys & co")["tables.tex"]
    caption = lines_with(tex, r"\caption")[0]
    for part in (r"Toys \& co.", "3 training seeds", "95\\% t interval", "100 problems on sums", "avg@4"):
        assert part in caption


def test_the_largest_k_is_the_sampled_accuracy(tmp_path):
    rows = cell_scores("grpo", 2, 0.5, measure="avg@16") + cell_scores("grpo", 2, 0.1, measure="avg@4")
    rows += cell_scores("grpo", 2, 0.2, measure="exact-avg@32") + cell_scores("grpo", 2, 0.3, measure="exact-greedy")
    table = tidy(MAIN, summary_of(tmp_path, rows))
    assert table.sampled_mean[1] == pytest.approx(0.5)
    assert table.sampled_measure[1] == "avg@16"
    assert table.greedy_mean.isna().all()


def test_other_variants_stay_out(tmp_path, summary):
    more = summary_of(tmp_path, study() + cell_scores("mc-grpo", 4, 0.9, variant="format"))
    assert tidy(MAIN, more).greedy_mean.equals(tidy(MAIN, summary).greedy_mean)


def test_out_of_distribution_benchmarks_have_a_table_of_their_own(tmp_path):
    far = {"benchmark": "chains", "role": "out"}
    rows = study() + cell_scores("dapo", 2, 0.2, **far) + cell_scores("mc-dapo", 2, 0.1, **far)
    table = tidy(OOD, summary_of(tmp_path, rows))
    assert table.method.tolist() == ["none", "dapo", "mc-dapo"]
    assert set(table.benchmark) == {"chains"}
    assert table.greedy_mean.isna().tolist() == [True, False, False]


def test_a_table_longer_than_a_page_is_a_float_per_setting(tmp_path):
    budgets, settings = range(2, 14), ("toy_a", "toy_b")
    rows = [
        s
        for name in settings
        for g in budgets
        for m in ("grpo", "mc-grpo")
        for s in cell_scores(m, g, 0.5, setting=name)
    ]
    tex = written(tmp_path / "out", summary_of(tmp_path, rows))["tables.tex"]
    assert [tex.count(rf"\label{{tab:main-{name}}}") for name in settings] == [1, 1]


def test_the_command_writes_the_same_bytes_again(tmp_path, summary):
    arguments = ["--summary", str(tmp_path / "summary.csv"), "--output", str(tmp_path / "out"), "--title", "Toys"]
    main(arguments)
    first = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    main(arguments)
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert set(first) == {"tables.tex", "tables.md", "tables.csv", "headline.md", "timings.tex", "timings.md"}
    numbers = pd.read_csv(tmp_path / "out" / "tables.csv", keep_default_na=False, na_values=[""])
    row = numbers.query("table == 'main' and method == 'mc-grpo' and num_generations == 2").iloc[0]
    assert row.sampled_difference == pytest.approx(0.05)
    assert b"Tables without a run in this study: dapo, dr_grpo, ood." in first["tables.md"]


def test_a_summary_without_accuracies_is_an_error(tmp_path, summary):
    summary[summary.role == "train"].to_csv(tmp_path / "summary.csv", index=False)
    with pytest.raises(SystemExit, match="no accuracy"):
        main(["--summary", str(tmp_path / "summary.csv"), "--output", str(tmp_path / "out")])


def test_headline_says_which_way_it_points_with_the_control_beside_it(summary):
    sampled, greedy = lines_with(headline(summary), "- At")
    assert sampled.startswith(
        "- At G=2, sampled (avg@4), the median (MC-GRPO) beats the mean (GRPO): +5.0 points [+4.8, +5.2] (3 seeds); "
    )
    assert "the control (GRPO+1), is indistinguishable from the mean (GRPO): +1.0 points [−23.8, +25.8]" in sampled
    assert "greedy, the median (MC-GRPO) falls behind the mean (GRPO): −6.0 points [−6.2, −5.8] (3 seeds)" in greedy


def test_headline_without_a_baseline_or_a_median(tmp_path):
    alone = summary_of(tmp_path, cell_scores("mc-dapo", 2, 0.5))
    assert "(MC-DAPO) has no run of the mean (DAPO) to be compared with." in headline(alone)
    assert headline(summary_of(tmp_path, cell_scores("dapo", 2, 0.5))) == "No median-centred run to compare.\n"


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_tables_compile(tmp_path, summary):
    write_tables(summary, tmp_path, "Toys & 100% of_them")
    wrapper = r"\documentclass{article}\usepackage{booktabs,adjustbox}\usepackage[table]{xcolor}"
    (tmp_path / "all.tex").write_text(wrapper + r"\begin{document}\input{tables.tex}\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_training_times_stand_apart_from_what_is_the_same_at_every_run(tmp_path, summary):
    texts = written(tmp_path / "out", summary)
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in texts["timings.md"].splitlines() if "|" in line
    ]
    assert rows[0] == ["Setting", "G", "GRPO", "MC-GRPO", "GRPO+1"]
    assert [row[1:] for row in rows[2:]] == [["4", "40.0", "missing", "missing"], ["2", "20.0", "23.0", "24.0"]]
    assert "24.0" in texts["timings.tex"]
    assert "24.0" not in texts["tables.tex"] and "24.0" not in texts["tables.md"]
