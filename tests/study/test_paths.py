"""Where the files of a study are, and that its workflow puts them there."""

from pathlib import Path

import pytest

from mcgrpo.records import PROTOCOL_SUFFIXES
from mcgrpo.study.paths import ResultFiles, StudyFiles

FILES = StudyFiles("mini")
RUN = "toy/grpo/G2/default/seed0"
OF_A_RUN = ("completions", "grades", "rollouts", "rollout_grades", "flips")


def test_a_file_of_a_benchmark_has_its_kind_its_run_and_its_name():
    assert FILES.results.completions(RUN, "sums") == Path(f"results/mini/completions/{RUN}/sums.jsonl")
    assert FILES.results.rollout_grades(RUN, "sums") == Path(f"results/mini/rollout-grades/{RUN}/sums.jsonl")
    assert FILES.results.grades(RUN, "sums", "robust") == Path(f"results/mini/grades/{RUN}/sums.robust.jsonl")


def test_jobs_have_their_logs_and_times_under_their_rule():
    assert FILES.log("generate", f"{RUN}/sums") == Path(f"logs/mini/generate/{RUN}/sums.log")
    assert (FILES.log("plan"), FILES.results.benchmark("plan")) == (
        Path("logs/mini/plan.log"),
        Path("results/mini/benchmarks/plan.tsv"),
    )


@pytest.mark.parametrize("kind", OF_A_RUN)
def test_wildcards_are_names_like_others(kind):
    pattern = str(getattr(FILES.results, kind)("{run}", "{benchmark}"))
    assert pattern.format(run=RUN, benchmark="sums") == str(getattr(FILES.results, kind)(RUN, "sums"))


def test_no_two_files_of_a_run_are_one():
    paths = [getattr(FILES.results, kind)(RUN, "sums") for kind in OF_A_RUN]
    paths += [FILES.results.grades(RUN, "sums", protocol) for protocol in PROTOCOL_SUFFIXES if protocol != "paper"]
    paths += [kind(RUN) for kind in (FILES.results.run, FILES.results.unfinished, FILES.results.model)]
    assert len(set(paths)) == len(paths)


def test_results_may_lie_anywhere():
    assert ResultFiles(Path("elsewhere")).summary == Path("elsewhere/summary.csv")
    assert ResultFiles().flips(RUN, "sums") == Path(f"flips/{RUN}/sums.jsonl")
    assert StudyFiles("mini", Path("/archive")).results.plan == Path("/archive/results/mini/plan.json")
