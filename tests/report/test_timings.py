import pytest
from answers import answer_of, plan_of
from cells import cell, frame, seconds, study

from mcgrpo.report.tables.write import write_tables

NOTHING = answer_of(plan_of([], baselines=()), {})


def timings(tmp_path, rows):
    write_tables(frame(tmp_path, rows), NOTHING, tmp_path)
    text = (tmp_path / "timings.md").read_text()
    assert ("none of these has an interval" in text) is ("Training time:" in text)
    return [[place.strip() for place in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line]


@pytest.mark.slow
def test_a_method_stands_beside_its_baseline_with_their_ratio(tmp_path):
    head, _, *lines = timings(tmp_path, study())
    assert head == ["Setting", "G", "Method", "Ours (s)", "Ours, baseline", "Ours, ratio", "Seeds"]
    assert lines == [
        ["toy_a", "4", "MC-GRPO, GRPO", "missing", "40.0", "missing", "0/3 and 3"],
        ["", "2", "MC-GRPO, GRPO", "23.0", "20.0", "1.15", "3"],
        ["", "", "GRPO+1, GRPO", "24.0", "20.0", "1.20", "3"],
    ]


def test_a_baseline_without_a_partner_has_a_line_alone(tmp_path):
    _, _, line = timings(tmp_path, [cell("dapo", 2, 0.5), seconds("dapo", 2, 123.4)])
    assert line == ["toy_a", "2", "DAPO", "123", "", "", "3"]


def test_published_seconds_stand_beside_ours(tmp_path):
    rows = [cell("grpo", 2), seconds("grpo", 2, published=1316.0), seconds("mc-grpo", 2, 10.0, published=1521.0)]
    head, _, line = timings(tmp_path, rows)
    assert head[3:6] == ["Published (s)", "Published, baseline", "Published, ratio"]
    assert line[3:] == ["1521", "1316", "1.16", "10.0", "missing", "missing", "0/3 and 3"]


@pytest.mark.slow
def test_times_change_nothing_but_the_timings(tmp_path):
    changed = ("timings.tex", "timings.md")
    files = []
    for second, name in ((23.0, "a"), (29.0, "b")):
        rows = [row for row in study() if row.role != "train"]
        summary = frame(tmp_path, [*rows, seconds("mc-grpo", 2, second)])
        write_tables(summary, NOTHING, tmp_path / name)
        files.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert sorted(name for name in files[0] if files[0][name] != files[1][name]) == sorted(changed)


def test_no_times_are_no_error(tmp_path):
    assert timings(tmp_path, [cell("grpo", 2, 0.5)]) == []
    assert (tmp_path / "timings.tex").read_text().startswith("% No training time")
