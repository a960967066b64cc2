"""Does the median help? A study's answer in two parts, each with its paired numbers, from contrasts.csv.

The part that decides is about the control GRPO+1, which draws as many rollouts as MC-GRPO and keeps the mean: what the
median gains over it is the median's. The other is about GRPO at the same G, with one rollout less for each prompt.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from mcgrpo.analyse.claims import questions
from mcgrpo.analyse.records import Contrast
from mcgrpo.records import CELL, Plan
from mcgrpo.report import wording
from mcgrpo.report.claims.judge import verdicts
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import label
from mcgrpo.study.primary import CONTROL, MEAN, METHOD

WORDS = {
    "holds": "better", "fails": "worse", "equivalent": "equivalent", "inconclusive": "not shown",
    "not measured": wording.MISSING,
}  # fmt: skip
"""The verdict on the claim that a difference is above 0, in words for a gain."""
ASKED = {CONTROL: "Does the median help?", MEAN: "Is MC-GRPO better than GRPO at the same G?"}
AGAINST = {
    CONTROL: "which draws as many rollouts and keeps the mean",
    MEAN: "which draws one rollout less for each prompt",
}
UNGRADED = {"unparseable": "unparseable", "timeout": "timed out in grading", "error": "failed in grading"}
"""Verdicts on completions that are neither right nor wrong, in words."""
PLACE = ["setting", "benchmark", "G"]


@dataclass(frozen=True)
class Answer:
    """The comparisons of a study's method with both baselines.

    Args:
        rows: `baseline`, `measure`, `setting`, `benchmark`, `G` and `seeds` of each, with its `number` and its `word`.
            Words are corrected for the number of comparisons with one baseline by one measure (Holm).
        measure: the primary one; the other decoding stands beside it without a verdict.
        margin: the study's `equivalence_margin`.
    """

    rows: pd.DataFrame
    measure: str
    margin: float

    def part(self, baseline: str) -> pd.DataFrame:
        """The comparisons with one baseline that decide."""
        return self.rows[(self.rows.baseline == baseline) & (self.rows.measure == self.measure)]

    def word(self, baseline: str = CONTROL) -> str:
        """What these say together; none is better or worse by chance in more than 5% of studies."""
        return overall(list(self.part(baseline).word))

    def compares(self, baseline: str) -> str:
        """What is compared, in what; or that the study does not compare it."""
        beside = f"{label(METHOD)} {{}} {label(baseline)}, {AGAINST[baseline]}"
        if self.part(baseline).empty:
            return f"{beside.format('is not trained beside')}."
        sort = "greedy accuracy" if self.measure == "greedy" else f"sampled accuracy ({self.measure})"
        return f"{beside.format('against')}, in {sort}."

    @property
    def about(self) -> str:
        """What the words mean."""
        within = wording.count_points(self.margin)
        text = (
            "Differences are in points, paired by seed and problem, with the 95% interval of one comparison. Better, "
            "worse: by a two-sided test at 5%, corrected for the number of comparisons with the same baseline (Holm). "
            f"Equivalent: neither, and the difference lies within {within} by two one-sided tests at 5%, corrected "
            "likewise. Not shown: none of these."
        )
        beside = " The other decoding is of the same models, and has no verdict."
        return text + beside * bool((self.rows.measure != self.measure).any())


def answer(plan: Plan, contrasts: Iterable[Contrast]) -> Answer:
    """The answer of a study.

    Args:
        plan: of the study.
        contrasts: the rows of contrasts.csv.
    """
    primary = plan.primary.measure
    asked = {claim.id: claim.comparisons[0].terms[1] for claim in questions(plan)}  # the baseline's
    compared = [(asked[row.claim], row) for row in contrasts if row.claim in asked and row.comparison]
    rows = []
    for measure, baseline in dict.fromkeys((each.measure, each.method) for each in asked.values()):
        own = [row for each, row in compared if (each.measure, each.method) == (measure, baseline)]
        for row, verdict in zip(own, verdicts(own), strict=True):
            place = row.setting or "", row.benchmark or "", asked[row.claim].num_generations
            numbers = (None if each is None else each / 100 for each in (row.value, row.low, row.high))
            number = wording.estimate(*numbers, verdict=WORDS[verdict] if measure == primary else None)
            rows.append((baseline, measure, *place, row.seeds or 0, number, WORDS[verdict]))
    columns = ["baseline", "measure", *PLACE, "seeds", "number", "word"]
    return Answer(pd.DataFrame(rows, columns=columns), primary, plan.equivalence_margin)


def overall(words: Sequence[str]) -> str:
    """One word for the verdicts of several comparisons."""
    there = [word for word in words if word != wording.MISSING]
    if not there:
        return "Not known yet" if words else "Not asked"
    if "better" in there and "worse" in there:
        word = "It depends"
    elif "better" in there:
        word = "Yes" if set(there) == {"better"} else "In part"
    elif "worse" in there:
        word = "No, it hurts" if set(there) == {"worse"} else "In part it hurts"
    else:
        word = "No, it is equivalent" if set(there) == {"equivalent"} else "Not shown"
    return word if len(there) == len(words) else f"So far: {word[0].lower()}{word[1:]}"


def markdown(found: Answer, lost: str) -> str:
    """The part that decides, the other one, each with a line for a comparison; what words mean; and what was lost."""
    parts = [f"**{ASKED[CONTROL]} {found.word()}.** {found.compares(CONTROL)}", _listed(found, CONTROL)]
    parts += [f"{ASKED[MEAN]} {found.word(MEAN)}. {found.compares(MEAN)}", _listed(found, MEAN)]
    parts += ["" if found.rows.empty else found.about, f"Of the study: {lost}\n"]
    return "\n\n".join(filter(None, parts))


def _listed(found: Answer, baseline: str) -> str:
    """A line for each comparison with a baseline, with the other decoding in brackets."""
    lines = []
    for (setting, benchmark, size), rows in found.rows[found.rows.baseline == baseline].groupby(PLACE, sort=False):
        row, *others = rows.itertuples()  # the primary measure is first
        told = [wording.count(row.seeds, "seed")] if row.seeds else []
        told += [f"{other.measure}: {other.number}" for other in others]
        number = row.number
        text = f"{number.value} points {number.interval}, {number.verdict}" if number.interval else str(number)
        lines.append(f"- {setting} on {benchmark}, G={size}: {text}" + f" ({'; '.join(told)})" * bool(told))
    return "\n".join(lines)


def table(found: Answer) -> Table | None:
    """The answer as a table, with its sentences as the caption; None if nothing is compared."""
    if found.rows.empty:
        return None
    asked = " ".join(f"{ASKED[each]} {found.word(each)}. {found.compares(each)}" for each in (CONTROL, MEAN))
    beside = ["" if measure == found.measure else f", {measure}" for measure in found.rows.measure]
    names = [f"{label(METHOD)} − {label(each)}{more}" for each, more in zip(found.rows.baseline, beside, strict=True)]
    wide = found.rows.assign(name=names).pivot(index=PLACE, columns="name", values="number").fillna("")
    seeds = found.rows[found.rows.measure == found.measure].groupby(PLACE).seeds.agg(wording.span)
    frame = wide[list(dict.fromkeys(names))].assign(Seeds=seeds).reset_index()
    frame = frame.rename(columns={"setting": "Setting", "benchmark": "Benchmark"})
    return Table("answer", f"{asked} {found.about}", frame)


def lost(summary: pd.DataFrame) -> str:
    """Finished trainings, rollouts without a reward, and completions that could not be graded, in one sentence.

    Rollouts and completions are those of finished trainings: what was not run has lost nothing.
    """
    trained = summary[summary.role == "train"]
    seconds = trained[trained.measure == "seconds"]
    planned, finished = int(seconds.planned.sum()), int(seconds.seeds.sum())
    parts = [f"{finished} of {wording.count(planned, 'training')} finished"] if planned else []
    without = trained[(trained.measure == "frac_groups_zero") & (trained["mean"] == 1)]
    if still := int(without.seeds.sum()):
        parts.append(f"{still} of them had no advantage but 0 at any step, so that nothing could be learned")
    drawn, shares = (trained[trained.measure == name].set_index([*CELL]) for name in ("rollouts", "frac_unscorable"))
    totals = pd.concat({"drawn": drawn["mean"] * drawn.seeds, "share": shares["mean"]}, axis=1).dropna()
    total, unscorable = round(totals.drawn.sum()), round((totals.drawn * totals.share).sum())
    parts += [f"of {total:,} rollouts {unscorable:,} without a reward"] if total else []
    rates = summary[summary.role.isin(("in", "out")) & summary["mean"].notna()]
    samples = rates.measure.str.extract(r"^avg@(\d+)$")[0].astype(float).max()
    rates = rates.assign(completions=rates.seeds * rates.n * (1 + (0 if pd.isna(samples) else samples)))
    by_verdict = {word: rates[rates.measure == f"rate-{verdict}"] for verdict, word in UNGRADED.items()}
    if graded := max(round(rows.completions.sum()) for rows in by_verdict.values()):
        told = [f"{round((rows['mean'] * rows.completions).sum()):,} {word}" for word, rows in by_verdict.items()]
        parts.append(f"of {graded:,} graded completions {', '.join(told)}")
    return f"{'; '.join(parts or ['nothing was trained'])}."
