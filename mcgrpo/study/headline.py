"""The runs of a study's headline, which come first, so that there is an answer long before the study ends."""

from collections.abc import Iterable

from mcgrpo.records import Run
from mcgrpo.study.methods import METHODS, UNTRAINED, is_median
from mcgrpo.study.variants import DEFAULT

FIRST_SEEDS = 2
"""Seeds of the first answer; each further one has twice as many."""


def headline_runs(runs: Iterable[Run]) -> list[Run]:
    """The median-centred runs at the smallest G that they share with their baselines, those, and their controls."""
    runs = [run for run in runs if run.method != UNTRAINED and run.variant == DEFAULT]
    cells = {(run.setting, run.num_generations, run.method) for run in runs}
    smallest: dict[tuple[str, str | None], int] = {}
    for run in runs:
        baseline = METHODS[run.method].baseline
        if is_median(run.method) and (run.setting, run.num_generations, baseline) in cells:
            known = smallest.get((run.setting, baseline), run.num_generations)
            smallest[run.setting, baseline] = min(run.num_generations, known)
    return [
        run
        for run in runs
        if smallest.get((run.setting, METHODS[run.method].baseline or run.method)) == run.num_generations
    ]


def answers(headline: Iterable[Run]) -> dict[int, list[Run]]:
    """A number of seeds -> the runs of the headline with those seeds: 2, 4, 8 ... and all that the study has."""
    headline = list(headline)
    seeds = sorted({run.seed for run in headline})
    counts = [FIRST_SEEDS << doubled for doubled in range(len(seeds)) if FIRST_SEEDS << doubled < len(seeds)]
    return {count: [run for run in headline if run.seed in seeds[:count]] for count in (*counts, len(seeds)) if seeds}
