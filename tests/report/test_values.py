import shutil
import subprocess
from pathlib import Path

import pytest
from cells import cell, flip, frame, gains_frame, seconds, seed_gains, study

from mcgrpo.report.tables.values import entries, values
from mcgrpo.report.tables.write import write_tables

SHELL = Path(__file__).parents[2] / "reports/reproduction.tex"


def test_keys_name_the_cell_and_missing_numbers_have_none(tmp_path):
    (greedy,) = [row for row in study() if row.method == "mc-grpo" and row.difference and row.measure == "greedy"]
    gains = gains_frame(tmp_path, seed_gains(greedy, -0.055, -0.06, -0.065))
    found = dict(entries(frame(tmp_path, study()), gains, "Toys"))
    place = "toy_a/sums/mc-grpo/G2"
    assert found[f"gain-seeds/{place}/greedy"] == "−5.5, −6.0, −6.5"
    assert found[f"gain/{place}/greedy"] == "−6.0"
    assert found[f"gain-interval/{place}/sampled"] == "[+4.5, +6.0]"
    assert found[f"gain-verdict/{place}/greedy"] == "worse"
    assert found["gain-verdict/toy_a/sums/grpo-plus1/G2/greedy"] == "inconclusive"
    assert found["gain-detectable/toy_a/sums/grpo-plus1/G2/greedy"] == "3.4"
    assert found[f"both/{place}/greedy"] == "44.0 [42.0, 46.0]"
    assert found["seeds/toy_a/sums/mc-grpo/G4/greedy"] == "0/3"
    assert not [key for key in found if "mc-grpo/G4" in key and not key.startswith("seeds/")]


def test_counts_are_of_training_runs(tmp_path):
    found = dict(entries(frame(tmp_path, study()), gains_frame(tmp_path), "Toys"))
    assert (found["runs/planned"], found["runs/finished"], found["seeds/planned"]) == ("15", "12", "3")
    assert found["study/title"] == "Toys"


def test_variants_flips_and_published_numbers_have_keys(tmp_path):
    rows = [
        cell("grpo", 2, 0.5, variant="composite", change=(0.01, 0.0, 0.02), published=0.79),
        flip("mean/oracle-mean/strict/k2/exact", 0.125),
    ]
    found = dict(entries(frame(tmp_path, rows), gains_frame(tmp_path), ""))
    assert found["change/toy_a/sums/grpo/G2/composite/greedy"] == "+1.0"
    assert found["published/toy_a/sums/grpo/G2/composite/greedy"] == "79.00"
    assert found["mean/toy_a/sums/none/G0/mean/oracle-mean/strict/k2/exact"] == "12.5"


def test_every_key_is_defined_once_and_no_time_is_among_them(tmp_path):
    keys = [key for key, _ in entries(frame(tmp_path, study()), gains_frame(tmp_path), "")]
    assert len(keys) == len(set(keys))
    assert "23.0" not in values(frame(tmp_path, [*study(), seconds("dapo", 2, 23.0)]), gains_frame(tmp_path), "")


def report(folder, rows=None, title="Toys & 100% of_them"):
    """Compile the report beside a study; the text of its pages."""
    shutil.copy(SHELL, folder)
    if rows is not None:
        write_tables(frame(folder, rows), gains_frame(folder), folder / "toys", title)
    command = [
        "latexmk",
        "-pdf",
        "-interaction=nonstopmode",
        "-halt-on-error",
        r"-usepretex=\def\here{toys}",
        SHELL.name,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    pages = subprocess.run(
        ["pdftotext", "-layout", "reproduction.pdf", "-"], cwd=folder, capture_output=True, text=True
    )
    return " ".join(pages.stdout.split()), (folder / "reproduction.log").read_text()


needs_latex = pytest.mark.skipif(
    not (shutil.which("latexmk") and shutil.which("pdftotext")), reason="latexmk or pdftotext is not installed"
)


@needs_latex
@pytest.mark.slow
def test_the_report_has_the_numbers_of_its_study(tmp_path):
    text, log = report(tmp_path, study())
    assert "Toys & 100% of_them" in text
    assert text.index("Does the median help at G=2 here? It depends.") < text.index("The question") < 3000
    assert "The study plans 15 training runs" in text and "12 of them are finished" in text
    assert "44.0 [42.0, 46.0]" in text
    assert "(Figure ood: not part of this study, or not made yet.)" in text
    assert "(Table dapo: not part of this study, or not made yet.)" in text
    assert "Overfull" not in log and "undefined" not in log


@needs_latex
@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (r"\input /etc/passwd", r"\input /etc/passwd"),
        (r"~a^b^^5cinput{2,4,8} $x$ \end{document} #1 %", r"~a^b^^5cinput{2,4,8} $x$ \end{document} #1 %"),
        ("Étude à 中文 G=2", "Étude à 4E2D 6587 G=2"),
    ],
)
def test_a_title_is_text_and_nothing_else(tmp_path, title, shown):
    """Also with letters that LaTeX has no font for here: each is a box with its number."""
    text, _ = report(tmp_path, study(), title)
    assert shown in text or shown.replace(" ", "") in text.replace(" ", ""), text[:500]
    assert "root:" not in text


@needs_latex
@pytest.mark.slow
def test_the_report_stands_without_any_result(tmp_path):
    text, _ = report(tmp_path)
    assert "The study plans missing training runs" in text
    assert "(Table main: not part of this study, or not made yet.)" in text


@needs_latex
@pytest.mark.slow
@pytest.mark.parametrize("title", ["Toys & 100% of_them", "Étude G=2"])
def test_the_document_is_called_as_its_study(tmp_path, title):
    report(tmp_path, study(), title)
    told = subprocess.run(["pdfinfo", tmp_path / "reproduction.pdf"], capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[0].split(":", 1)[1].strip() == f"Median-centred GRPO, reproduced and judged: {title}"
