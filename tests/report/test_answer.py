"""The answer of the first seeds, from files such as trainings and grades leave."""

from dataclasses import asdict
from itertools import product

import pytest
from collected import a_run, grades, metrics, write_run

from mcgrpo import shipped
from mcgrpo.files import write_json, write_jsonl
from mcgrpo.report import answer


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "figure"), [(2, "gains-sampled"), (4, "gains-greedy")])
def test_an_answer_has_the_seeds_that_it_names_whatever_is_finished_since(seeds, figure, tmp_path):
    """It may be made again when all is finished, as in a copy of the study."""
    runs = [a_run(method, seed=seed) for method, seed in product(("grpo", "mc-grpo"), range(4))]
    for run in runs:
        write_run(tmp_path, run, metrics())
        rows = [asdict(grade) | {"gold_parsable": True} for grade in grades()]
        write_jsonl(tmp_path / "grades" / run.name / "sums.jsonl", rows)
    plan = {
        "study": "mini",
        "runs": [asdict(run) for run in runs],
        "benchmarks": {"toy": {"sums": "in"}},
        "evaluations": {run.name: {"sums": "in"} for run in runs},
        "flips": {},
        "grading": ["paper"],
        "measures": ["greedy", "avg@2"],
        "equivalence_margin": 0.01,
    }
    write_json(tmp_path / "plan.json", plan)
    options = {"plan": tmp_path / "plan.json", "results": tmp_path, "published": shipped.PUBLISHED}
    options |= {"seeds": f"{seeds} of 4", "figure": figure, "output": tmp_path / "answer"}
    answer.main([part for name, value in options.items() for part in (f"--{name}", str(value))])
    text = (tmp_path / "answer/headline.md").read_text()
    assert text.startswith(f"With {seeds} of 4 seeds: ")
    assert f"Lost in these comparisons: 0 of {2 * seeds} trainings" in text
    assert (tmp_path / f"answer/{figure}.png").is_file()
    gains = [line for line in text.splitlines() if "MC-GRPO against GRPO" in line]
    assert [line.split("seeds ")[1].count(",") + 1 for line in gains] == [seeds, seeds]
