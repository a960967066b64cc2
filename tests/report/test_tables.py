import shutil
import subprocess
from dataclasses import replace

import pandas as pd
import pytest
from answers import answer_of, contrasts_of, plan_of
from cells import cell, flip, frame, study
from claim_rows import pair, scores_of

from mcgrpo.analyse.records import Contrast
from mcgrpo.files import write_csv, write_json
from mcgrpo.report.tables.accuracy import display
from mcgrpo.report.tables.rows import as_rows, select
from mcgrpo.report.tables.write import TABLES, main, write_tables

NAMED = {table.name: table for table in TABLES}


@pytest.fixture
def summary(tmp_path):
    return frame(tmp_path, study())


def shown(name, summary):
    """The texts of a table as they are printed, a dictionary for each line."""
    table = display(NAMED[name], as_rows(select(NAMED[name], summary)))
    return [dict(zip(table.headings, (entry.text for entry in row), strict=True)) for row in table.rows()]


def caption(name, summary):
    return display(NAMED[name], as_rows(select(NAMED[name], summary))).caption


def lines_with(text, *parts):
    return [line for line in text.splitlines() if all(part in line for part in parts)]


PLAN, SCORES = plan_of(["toy_a"], baselines=("grpo",)), scores_of(pair(0.05, 0.01, setting="toy_a"))
ANSWER = answer_of(PLAN, SCORES)


def files_of(folder):
    write_json(folder / "plan.json", PLAN)
    write_csv(folder / "contrasts.csv", Contrast, contrasts_of(PLAN, SCORES))
    files = {"plan": "plan.json", "summary": "summary.csv", "contrasts": "contrasts.csv"}
    return [part for name, file in files.items() for part in (f"--{name}", str(folder / file))]


def written(folder, summary, title=""):
    write_tables(summary, ANSWER, folder, title)
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_rows_are_the_planned_cells_with_the_untrained_model_first_and_g_descending(summary):
    rows = [(row["Method"], row["#Rollout (G)"]) for row in shown("main", summary)]
    assert rows == [("untrained", ""), ("GRPO", "4"), ("MC-GRPO", "4+1"), ("GRPO", "2"), ("MC-GRPO", "2+1")]


def test_intervals_need_not_be_symmetric_and_stand_in_brackets(summary):
    row = shown("main", summary)[-1]
    assert row["Greedy (%)"] == "44.0 [42.0, 46.0]"
    assert row["Gain, greedy"] == "−6.0 [−7.0, −5.5] worse"
    assert row["Gain, sampled"] == "+5.0 [+4.5, +6.0] better"
    assert row["Seeds"] == "3"


def test_a_missing_cell_says_so_and_is_never_zero(summary):
    row = shown("main", summary)[2]
    numbers = ("Greedy (%)", "Gain, greedy", "Sampled (%)", "Gain, sampled")
    assert [row[name] for name in numbers] == ["missing"] * 4
    assert row["Seeds"] == "0/3"


def test_fewer_seeds_than_planned_and_fewer_shared_ones_are_told(tmp_path):
    gain = (0.1, 0.05, 0.15)
    rows = [cell("grpo", 2, 0.5, seeds=2), cell("mc-grpo", 2, 0.6, gain=gain, difference_seeds=2)]
    first, second = shown("main", frame(tmp_path, rows))
    assert (first["Seeds"], second["Seeds"]) == ("2/3", "3")
    assert second["Gain, greedy"] == "+10.0 [+5.0, +15.0] better (2 shared seeds)"


def test_the_control_table_keeps_to_where_the_control_is_planned(summary):
    assert [row["#Rollout (G)"] for row in shown("control", summary)] == ["", "2", "2+1", "2+1"]
    assert select(NAMED["control"], summary[summary.method != "grpo-plus1"]).empty


def test_gains_are_coloured_by_their_interval(tmp_path, summary):
    tex = written(tmp_path / "out", summary)["tables.tex"]
    main_row, control_row = lines_with(tex, "MC-GRPO", "2+1")
    assert main_row == control_row
    assert (
        r"\cellcolor{black!8}\textcolor{red!75!black}{$-$6.0 {\scriptsize [$-$7.0, $-$5.5]} {\scriptsize worse}}"
        in main_row
    )
    assert (
        r"\cellcolor{black!8}\textcolor{green!45!black}{+5.0 {\scriptsize [+4.5, +6.0]} {\scriptsize better}}"
        in main_row
    )
    plus1, _ = lines_with(tex, "GRPO+1 &")  # the other one is of the table of stability
    assert plus1.count(r"+1.0 {\scriptsize [$-$10.0, +12.0]} {\scriptsize inconclusive (3.4)}") == 2
    assert "color" not in plus1


def test_markdown_has_the_word_and_bold_instead_of_colours(tmp_path, summary):
    text = written(tmp_path / "out", summary)["tables.md"]
    plus1, _ = lines_with(text, "| GRPO+1 ")
    assert plus1.count("+1.0 [−10.0, +12.0] inconclusive (3.4)") == 2
    assert "**−6.0 [−7.0, −5.5] worse**" in lines_with(text, "MC-GRPO", "2+1")[0]


def test_the_caption_states_seeds_problems_and_samples(summary):
    text = caption("main", summary)
    for part in ("over seeds and problems;", "100 problems on sums", "avg@4", "3 seeds planned, 0 to 3 there"):
        assert part in text
    assert "Published" not in text


def test_at_one_seed_the_caption_says_that_problems_are_all(tmp_path):
    rows = [cell("none", 0, 0.1), *(cell(m, 2, 0.5, planned=1, seeds=1) for m in ("grpo", "mc-grpo"))]
    text = caption("main", frame(tmp_path, rows))
    assert "with its 95% interval over problems only: there is one seed" in text
    assert "; 1 seed." in text
    more = caption("main", frame(tmp_path, [*rows, cell("grpo", 4, 0.5)]))
    assert "over seeds and problems (over problems only where there is one seed)" in more


def test_nothing_run_is_said(tmp_path):
    assert "Nothing of this table has been run." in caption("main", frame(tmp_path, [cell("grpo", 2)]))


def test_published_numbers_stand_beside_ours(tmp_path):
    paper = {"published": 0.8354, "published_difference": 0.0462, "difference_excludes_published": False}
    rows = [cell("grpo", 2, published=0.7892), cell("mc-grpo", 2, 0.85, gain=(0.05, 0.04, 0.06), **paper)]
    first, second = shown("main", frame(tmp_path, rows))
    assert (first["Published (%)"], first["Ours − published"], first["Published gain"]) == ("78.92", "missing", "")
    assert (second["Published (%)"], second["Ours − published"]) == ("83.54", "+1.5")
    assert second["Published gain"] == "+4.62 not excluded"


@pytest.mark.parametrize(
    ("excludes", "text"), [(True, "+4.62 excluded"), (False, "+4.62 not excluded"), (None, "+4.62")]
)
def test_beside_a_published_gain_stands_whether_ours_excludes_it(tmp_path, excludes, text):
    paper = {"published": 0.8354, "published_difference": 0.0462, "difference_excludes_published": excludes}
    row = shown("main", frame(tmp_path, [cell("mc-grpo", 2, 0.85, gain=(0.0, -0.1, 0.1), **paper)]))[-1]
    assert row["Published gain"] == text


def test_the_four_words_are_explained_with_the_studys_margin(tmp_path):
    rows = [cell("grpo", 2, 0.5), cell("mc-grpo", 2, 0.5, gain=(0.0, -0.004, 0.005), equivalence_margin=0.02)]
    summary = frame(tmp_path, rows)
    assert shown("main", summary)[-1]["Gain, greedy"] == "+0.0 [−0.4, +0.5] equivalent"
    assert "Equivalent: it does not, and the difference lies within 2 points by two one-sided tests" in caption(
        "main", summary
    )
    assert "Inconclusive" not in caption("main", frame(tmp_path, [cell("grpo", 2, 0.5)]))


def test_the_placeholders_of_the_paper_are_told_where_its_numbers_are(tmp_path):
    rows = [cell("grpo", 2, 0.5, variant="composite", published=0.79), cell("none", 0, 0.3)]
    summary = frame(tmp_path, rows)
    assert "All numbers are placeholders" in caption("composite", summary)
    assert [row["Method"] for row in shown("composite", summary)] == ["untrained", "GRPO"]
    without = frame(tmp_path, [cell("grpo", 2, 0.5, variant="composite")])
    assert "placeholders" not in caption("composite", without)


def test_injected_flips_are_ordered_by_rate_with_the_change_to_none(tmp_path):
    change = (-0.04, -0.05, -0.03)
    rows = [cell("grpo", 8, 0.5), cell("grpo", 4, 0.5)]
    rows += [cell("grpo", 8, 0.4, variant=f"flip-{name}", change=change) for name in ("0.4", "exact-0.25", "0.05")]
    lines = shown("injected-flips", frame(tmp_path, rows))
    assert [line["Variant"] for line in lines] == ["default", "ρ = 5%", "ρ = 40%", "ρ = 25%, exact"]
    assert [line["Change, greedy"] for line in lines] == ["", *["−4.0 [−5.0, −3.0] worse"] * 3]


def test_variants_have_the_gain_within_and_the_change_to_the_default(tmp_path):
    rows = [cell("grpo", 2, 0.5), cell("mc-grpo", 2, 0.5, gain=(0.0, -0.1, 0.1)), cell("grpo", 8, 0.5)]
    rows += [cell("mc-grpo", 2, 0.6, variant="released", gain=(0.1, 0.05, 0.15), change=(0.1, -0.01, 0.2))]
    rows += [cell("mc-grpo", 2, 0.6, variant=name) for name in ("composite", "flip-0.1")]
    default, released = shown("variants", frame(tmp_path, rows))
    assert (default["Variant"], released["Variant"]) == ("default", "released")
    assert released["Gain, greedy"] == "+10.0 [+5.0, +15.0] better"
    assert released["Change, greedy"] == "+10.0 [−1.0, +20.0] inconclusive (3.4)"


def test_a_gain_that_the_study_does_not_plan_is_blank_not_missing(tmp_path):
    change = (-0.1, -0.2, -0.05)
    rows = [cell("grpo", 2, 0.5), cell("mc-grpo", 2, 0.5, gain=(0.0, -0.1, 0.1))]
    alone = replace(cell("mc-grpo", 2, 0.4, variant="mad-zero-skip", change=change), baseline=None)
    *_, line = shown("variants", frame(tmp_path, [*rows, alone]))
    assert (line["Gain, greedy"], line["Change, greedy"]) == ("", "−10.0 [−20.0, −5.0] worse")


def test_out_of_distribution_benchmarks_have_a_table_of_their_own(tmp_path):
    far = {"benchmark": "chains", "role": "out"}
    lines = shown("ood", frame(tmp_path, [*study(), cell("dapo", 2, 0.2, **far), cell("mc-dapo", 2, 0.1, **far)]))
    assert [(line["Benchmark"], line["Method"]) for line in lines] == [("chains", "DAPO"), ("", "MC-DAPO")]


def test_sign_flips_by_convention_oracle_and_baseline(tmp_path):
    rows = [
        flip(f"{baseline}/oracle-mean/zeros/k{k}/{how}", 0.1 * k + (how == "sampled") * 0.01)
        for baseline in ("median", "mean")
        for k in (2, 4)
        for how in ("exact", "sampled")
    ]
    text = written(tmp_path / "out", frame(tmp_path, rows))["tables.md"]
    mean, median = ([place.strip() for place in line.split("|")] for line in lines_with(text, "20.0 [18.0"))
    assert mean[1:7] == ["toy_a", "sums", "untrained", "zeros", "mean", "mean"]
    assert mean[7:11] == ["20.0 [18.0, 22.0]", "21.0 [19.0, 23.0]", "40.0 [38.0, 42.0]", "41.0 [39.0, 43.0]"]
    assert median[1:7] == ["", "", "", "", "", "median"]


def test_a_table_longer_than_a_page_is_a_float_per_setting_below_one_name(tmp_path):
    settings = ("toy_a", "toy_b")
    rows = [cell(m, g, 0.5, setting=s) for s in settings for g in range(2, 14) for m in ("grpo", "mc-grpo")]
    tex = written(tmp_path / "out", frame(tmp_path, rows))["tables.tex"]
    assert tex.count(r"\DefineTable{main}{") == 1
    assert [tex.count(rf"\label{{tab:{name}}}") for name in ("main", "main-toy_b")] == [1, 1]


def test_the_csv_has_the_cells_of_every_table(tmp_path, summary):
    write_tables(summary, ANSWER, tmp_path / "out")
    numbers = pd.read_csv(tmp_path / "out" / "tables.csv", keep_default_na=False, na_values=[""])
    rows = numbers[(numbers.table == "main") & (numbers.method == "mc-grpo") & (numbers.num_generations == 2)]
    assert rows.set_index("measure").difference.to_dict() == {"greedy": -0.06, "avg@4": 0.05}
    assert numbers.table.unique().tolist() == ["main", "control", "stability"]


@pytest.mark.slow
def test_the_command_writes_the_same_bytes_again_and_names_what_is_not_planned(tmp_path, summary):
    arguments = [*files_of(tmp_path), "--output", str(tmp_path / "out"), "--title", "Toys"]
    main(arguments)
    first = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    main(arguments)
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    tables = {"tables.tex", "tables.md", "tables.csv", "headline.md"}
    tables |= {"timings.tex", "timings.md"}
    assert set(first) == tables
    captions = [line for line in first["tables.md"].decode().splitlines() if line.startswith("Toys. ")]
    assert len(captions) == 4 and b"Toys. Training time" in first["timings.md"] and b"Toys. GRPO" in first["tables.tex"]
    absent = "Tables without a cell in this study: dapo, dr_grpo, ood, composite, injected-flips, variants, rivals, "
    absent += "sign-flips."
    assert absent in first["tables.md"].decode() and absent in first["tables.tex"].decode()


def test_a_summary_without_tables_is_an_error(tmp_path, summary):
    frame(tmp_path, [c for c in study() if c.role == "train"])
    with pytest.raises(SystemExit, match="neither an accuracy"):
        main([*files_of(tmp_path), "--output", str(tmp_path / "out")])


def test_an_unreadable_summary_is_named(tmp_path):
    (tmp_path / "summary.csv").write_text("setting\nx\n")
    with pytest.raises(SystemExit, match=r"summary\.csv: column"):
        main([*files_of(tmp_path), "--output", str(tmp_path / "out")])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_tables_compile_where_they_stand(tmp_path, summary):
    write_tables(summary, ANSWER, tmp_path, "Toys & 100% of_them")
    wrapper = r"\documentclass{article}\usepackage{booktabs,adjustbox}\usepackage[table]{xcolor}"
    (tmp_path / "all.tex").write_text(wrapper + r"\begin{document}\input{tables.tex}\input{timings.tex}\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
