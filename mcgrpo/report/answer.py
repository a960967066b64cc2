"""Does the median help? A study's answer in two parts, each with its paired numbers, from comparisons.csv.

The part that decides is about the control GRPO+1, which draws as many rollouts as MC-GRPO and keeps the mean: what the
median gains over it is the median's. The other is about GRPO at the same G, with one rollout less for each prompt.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from mcgrpo.analyse.pairs import AVERAGE
from mcgrpo.analyse.records import Contrast
from mcgrpo.records import CELL, Plan
from mcgrpo.report import wording
from mcgrpo.report.tables.frame import Table
from mcgrpo.report.wording import Printed
from mcgrpo.study.methods import label
from mcgrpo.study.primary import CONTROL, MEAN, METHOD
from mcgrpo.study.variants import DEFAULT

ASKED = {CONTROL: "Does the median help?", MEAN: "Is MC-GRPO better than GRPO at the same G?"}
AGAINST = {
    CONTROL: "which draws as many rollouts and keeps the mean",
    MEAN: "which draws one rollout less for each prompt",
}
UNGRADED = {"unparseable": "unparseable", "timeout": "timed out in grading", "error": "failed in grading"}
"""Verdicts on completions that are neither right nor wrong, in words."""
PLACE = ["setting", "benchmark", "G"]


UNKNOWN = "not measured"


@dataclass(frozen=True)
class Answer:
    """The comparisons of a study's method with both baselines.

    Args:
        rows: `baseline`, `measure`, `decoding`, `setting`, `benchmark`, `G` and `seeds` of each, with its `number` and
            its `word`.
        measure: the primary one; the other decoding stands beside it.
        margin: the study's `equivalence_margin`.
        averages: by baseline and measure, over its comparisons; of a single one there is none.
    """

    rows: pd.DataFrame
    measure: str
    margin: float
    averages: dict[tuple[str, str], Printed]

    def part(self, baseline: str, is_primary: bool = True) -> pd.DataFrame:
        """The comparisons with one baseline that decide, or those of the other decoding."""
        return self.rows[(self.rows.baseline == baseline) & ((self.rows.measure == self.measure) == is_primary)]

    def word(self, baseline: str = CONTROL, is_primary: bool = True) -> str:
        """What these say together; by the primary measure, none is better or worse by chance in over 5% of studies."""
        return overall(list(self.part(baseline, is_primary).word))

    def compares(self, baseline: str) -> str:
        """What is compared, in what, and what the other decoding says; or that the study does not compare it."""
        beside = f"{label(METHOD)} {{}} {label(baseline)}, {AGAINST[baseline]}"
        own, other = self.part(baseline), self.part(baseline, False)
        if own.empty:
            return f"{beside.format('is not trained beside')}."
        text = f"{beside.format('against')}, in {_endpoint(own)}, the primary endpoint{self._average(own)}."
        if other.empty:
            return text
        as_paper = ", as the paper's released code decodes" if other.decoding.iloc[0] == "greedy" else ""
        word = _lower(self.word(baseline, False))
        return f"{text} In {_endpoint(other)}{as_paper}: {word} (exploratory){self._average(other)}."

    def _average(self, rows: pd.DataFrame) -> str:
        """Of the comparisons with a baseline by one measure: ", on average −1.1 points [−1.3, −0.9]"."""
        number = self.averages.get((rows.baseline.iloc[0], rows.measure.iloc[0]))
        return f", on average {_told(number, ' points')}" if number else ""

    @property
    def about(self) -> str:
        """What the words mean."""
        return (
            "Differences are in points, paired by seed and problem, with the 95% interval of one comparison. "
            f"{wording.about_verdicts(self.margin)} Corrected (Holm, each direction on its own) for the number of "
            "primary comparisons with the same baseline; the other decoding, of the same models, for those of its "
            "table, and exploratory. Averages have no verdict."
        )


def _endpoint(rows: pd.DataFrame) -> str:
    """An accuracy by its name: "sampled accuracy (avg@4)"."""
    measure, decoding = rows.measure.iloc[0], rows.decoding.iloc[0]
    return f"{decoding} accuracy" + (f" ({measure})" if measure != decoding else "")


def _lower(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}"


def answer(plan: Plan, comparisons: Iterable[Contrast]) -> Answer:
    """The answer of a study.

    Args:
        plan: of the study.
        comparisons: the rows of comparisons.csv.
    """
    found, averages = defaultdict(list), {}
    for row in comparisons:
        if row.family == AVERAGE:
            averages[row.other_method, row.measure] = wording.printed(row.value, row.low, row.high)
        if row.kind and (row.role, row.method, row.variant, row.other_variant) == ("in", METHOD, DEFAULT, DEFAULT):
            found[row.measure, row.other_method, row.num_generations, row.other_num_generations].append(row)
    first, asked, rows = plan.primary.measure, plan.primary.comparisons, []
    baselines = dict.fromkeys(each.baseline for each in asked)
    for measure in (first, *(each for each in plan.measures if each != first)):
        for baseline, each in ((name, each) for name in baselines for each in asked if each.baseline == name):
            size = each.num_generations
            own = [row for row in found[measure, baseline, size, size] if row.setting in each.settings]
            for row in sorted(own, key=lambda row: (row.setting, row.benchmark)):
                number = wording.printed(row.value, row.low, row.high, verdict=row.verdict, detectable=row.detectable)
                place = row.setting, row.benchmark, size
                told = number, row.verdict or UNKNOWN
                rows.append((baseline, measure, row.decoding, *place, row.seeds or 0, *told))
    columns = ["baseline", "measure", "decoding", *PLACE, "seeds", "number", "word"]
    return Answer(pd.DataFrame(rows, columns=columns), first, plan.equivalence_margin, averages)


def overall(words: Sequence[str]) -> str:
    """One word for the verdicts of several comparisons."""
    there = [word for word in words if word != UNKNOWN]
    if not there:
        return "Not known yet" if words else "Not asked"
    if "better" in there and "worse" in there:
        word = "It depends"
    elif "better" in there:
        word = "Yes" if set(there) == {"better"} else "In part"
    elif "worse" in there:
        word = "No, it hurts" if set(there) == {"worse"} else "In part it hurts"
    else:
        word = "No, it is equivalent" if set(there) == {"equivalent"} else "Inconclusive"
    return word if len(there) == len(words) else f"So far: {_lower(word)}"


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
        told += [f"{other.measure}: {_told(other.number)}" for other in others]
        text = _told(row.number, " points")
        lines.append(f"- {setting} on {benchmark}, G={size}: {text}" + f" ({'; '.join(told)})" * bool(told))
    return "\n".join(lines)


def _told(number: Printed, unit: str = "") -> str:
    """A number in a sentence: "+0.8 points [+0.2, +1.5], better"."""
    words = " ".join(filter(None, (number.verdict, number.note)))
    return f"{number.value}{unit} {number.interval}" + f", {words}" * bool(words) if number.interval else str(number)


def answer_table(found: Answer) -> Table | None:
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


def lost(summary: pd.DataFrame, selections: Container[str] = ()) -> str:
    """Finished trainings, rollouts without a reward, and completions that could not be graded, in one sentence.

    Rollouts and completions are those of finished trainings: what was not run has lost nothing. Those of `selections`
    are of other variants, and counted there.
    """
    summary = summary[[variant not in selections for variant in summary.variant]]
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
