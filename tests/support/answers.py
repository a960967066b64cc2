"""Plans with a primary endpoint, and the answer of scores."""

from mcgrpo.analyse.claims import questions
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.records import Plan, Primary, PrimaryComparison
from mcgrpo.report.answer import answer

BASELINES = ("grpo-plus1", "grpo")


def plan_of(settings, sizes=(2,), baselines=BASELINES, measures=("greedy",), runs=()):
    """A plan that compares MC-GRPO with these baselines at each G in each setting; the first measure is primary."""
    comparisons = [PrimaryComparison(baseline, size, list(settings)) for baseline in baselines for size in sizes]
    return Plan("toy", list(runs), {}, {run.name: {} for run in runs}, {}, ["paper"], 0.01, list(measures),
                Primary(measures[0], comparisons))  # fmt: skip


def contrasts_of(plan, scores, planned=()):
    """The rows of contrasts.csv for the questions of a plan."""
    places = {key.without_measure for key in (*scores, *planned)}
    return contrasts(questions(plan), scores, places, margin=plan.equivalence_margin)


def answer_of(plan, scores, planned=()):
    """The answer of a plan by these scores."""
    return answer(plan, contrasts_of(plan, scores, planned))
