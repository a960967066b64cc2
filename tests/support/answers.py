"""Plans with a primary endpoint, and the answer of scores."""

from dataclasses import replace

from runs import RUN

from mcgrpo.analyse.comparisons import comparisons
from mcgrpo.records import Plan, Primary, PrimaryComparison
from mcgrpo.report.answer import answer

BASELINES = ("grpo-plus1", "grpo")


def plan_of(settings, sizes=(2,), baselines=BASELINES, measures=("greedy",), runs=()):
    """A plan that compares MC-GRPO with these baselines at each G in each setting; the first measure is primary."""
    comparisons = [PrimaryComparison(baseline, size, list(settings)) for baseline in baselines for size in sizes]
    return Plan("toy", list(runs), {}, {run.name: {} for run in runs}, {}, ["paper"], 0.01, list(measures),
                Primary(measures[0], comparisons))  # fmt: skip


def planned_by(plan, scores, planned=()):
    """The plan with the runs of these scores, and of cells that have none."""
    runs, evaluations = {}, {}
    for key, seeds in {**{key: {0: None} for key in planned}, **scores}.items():
        for seed in seeds:
            names = {name: getattr(key, name) for name in ("setting", "method", "num_generations", "variant")}
            run = replace(RUN, **names, seed=seed)
            runs[run.name] = run
            evaluations.setdefault(run.name, {})[key.benchmark] = key.role
    settings = sorted({run.setting for run in runs.values()})
    return replace(plan, runs=[*runs.values()], evaluations=evaluations, benchmarks={name: {} for name in settings})


def comparisons_of(plan, scores, planned=(), claims=()):
    """The rows of comparisons.csv of a plan by these scores."""
    return comparisons(planned_by(plan, scores, planned), claims, scores)


def answer_of(plan, scores, planned=()):
    """The answer of a plan by these scores."""
    return answer(plan, comparisons_of(plan, scores, planned))
