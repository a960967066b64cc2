"""scores.jsonl to comparisons.csv: everything that a report compares, each once, with one verdict.

`python -m mcgrpo.analyse.comparisons --results results/STUDY`

The pairs of cells (`mcgrpo.analyse.pairs`) are judged within their families; then the claims of config/claims.yaml and
the questions of the study (`mcgrpo.analyse.contrasts`). A comparison of a claim that is the sign of such a pair has the
pair's verdict.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from mcgrpo import command_line, shipped
from mcgrpo.analyse import scored, selections
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.claims import Claim, questions, read_claims
from mcgrpo.analyse.contrasts import capped, cells_of, columns_of, contrasts, estimate_sum, is_sign
from mcgrpo.analyse.measures import decoding_of
from mcgrpo.analyse.pairs import AVERAGE, Pair, is_primary, pairs
from mcgrpo.analyse.published import as_cells, number_of, read_published
from mcgrpo.analyse.records import Contrast
from mcgrpo.analyse.scored import Scores
from mcgrpo.analyse.verdicts import MIRRORED, OF_PAIRS, PairVerdict, verdicts
from mcgrpo.records import Plan
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import read_plan
from mcgrpo.study.primary import METHOD
from mcgrpo.sums import write_table

Cells = tuple[CellKey, CellKey]
"""A cell, and the one that is subtracted."""
Words = dict[Cells, PairVerdict | None]
"""The verdict on each pair; None where it is not measured."""


def comparisons(
    plan: Plan, claims: Iterable[Claim], scores: Scores, printed: Mapping[CellKey, float] | None = None
) -> list[Contrast]:
    """The rows of comparisons.csv: the pairs, the averages of the primary ones, then the claims.

    Args:
        plan: of the study.
        claims: of `mcgrpo.analyse.claims.read_claims`.
        scores: of this plan, by `mcgrpo.analyse.scored.by_cell`.
        printed: the paper's numbers, of `mcgrpo.analyse.published.as_cells`.
    """
    planned = selections.planned_seeds(plan)
    study = _Study(scores, printed or {}, plan.equivalence_margin)
    found = {(pair.cell, pair.other): study.row(pair) for pair in pairs(plan, planned, scores)}
    families = defaultdict(list)
    for key, row in found.items():
        families[row.family].append(key)
    words: Words = {}
    for keys in families.values():
        own = verdicts([found[key] for key in keys])
        words |= {key: None if word == "not measured" else OF_PAIRS.get(word, word)
                  for key, word in zip(keys, own, strict=True)}  # fmt: skip
    judged = [replace(row, verdict=words[key]) for key, row in found.items()]
    rows = contrasts(claims, scores, planned, margin=plan.equivalence_margin)
    return [*judged, *averages(plan, found, scores), *(as_judged(row, words) for row in rows)]


def averages(plan: Plan, compared: Iterable[Cells], scores: Scores) -> Iterator[Contrast]:
    """The average of the primary comparisons with each baseline, by each accuracy that is shown; without a verdict.

    Args:
        plan: of the study.
        compared: the two cells of each pair.
        scores: by cell and seed.
    """
    found: dict[tuple[str, str], list[Cells]] = defaultdict(list)
    for cell, other in compared:
        if is_primary(plan, cell, other):
            found[other.method, cell.measure].append((cell, other))
    for (baseline, measure), pairs_of in found.items():
        if len(pairs_of) == 1 or not scores.keys() >= {*chain(*pairs_of)}:
            continue
        share = 1 / len(pairs_of)
        weights = {cell: share for cell, _ in pairs_of} | {other: -share for _, other in pairs_of}
        result, over, _ = estimate_sum(weights, scores)
        low, high = result.limits()
        yield Contrast(
            family=AVERAGE,
            decoding=decoding_of(measure),
            method=METHOD,
            measure=measure,
            other_method=baseline,
            other_measure=measure,
            unit="fraction",
            value=result.mean,
            low=low,
            high=high,
            seeds=result.seeds,
            over=over,
            comparisons=len(pairs_of),
        )


def as_judged(row: Contrast, words: Words) -> Contrast:
    """A comparison of a claim with the verdict on its pair, if it is the sign of one.

    A pair that only claims compare takes the verdict of the first of them, which is entered.
    """
    if not is_sign(row) or row.verdict in ("not measured", "not judged"):
        return row
    cell, other = cells_of(row)
    upward = row.at_least == 0
    (mine, back) = ((cell, other), (other, cell)) if upward else ((other, cell), (cell, other))
    if mine not in words and back not in words:
        words[mine] = OF_PAIRS.get(row.verdict, row.verdict)
    word = words[mine] if mine in words else MIRRORED.get(words[back], words[back])
    of_claims = {pair: claim for claim, pair in OF_PAIRS.items()}
    return replace(row, verdict=of_claims.get(word, word))


@dataclass(frozen=True)
class _Study:
    """What the rows of pairs are made of."""

    scores: Scores
    printed: Mapping[CellKey | None, float]
    margin: float

    def row(self, pair: Pair) -> Contrast:
        """A pair without its verdict."""
        cell, other = pair.cell, pair.other
        numbers = self.numbers(pair) if cell in self.scores and other in self.scores else {}
        if pair.kind == "difference":
            numbers |= self.published(pair, numbers)
        return Contrast(
            family=pair.family,
            kind=pair.kind,
            unit="fraction",
            at_least=0.0,
            equivalence_margin=self.margin,
            **columns_of(cell, other),
            **numbers,
        )

    def numbers(self, pair: Pair) -> dict:
        """The columns of a paired difference."""
        cells = [pair.cell, pair.other]
        result, over, lone = estimate_sum(dict(zip(cells, (1.0, -1.0), strict=True)), self.scores)
        low, high = result.limits()
        tested = capped(result)
        ours, theirs = (self.scores[key] for key in cells)
        gains = [ours[seed].value - theirs[seed].value for seed in scored.shared_seeds(cells, self.scores)]
        return {
            "value": result.mean,
            "low": low,
            "high": high,
            "seeds": result.seeds,
            "over": over,
            "detectable": None if lone else tested.detectable,
            "p_holds": 1.0 if lone else tested.p_value(0.0, "greater"),
            "p_fails": 1.0 if lone else tested.p_value(0.0, "less"),
            "p_equivalent": None if lone else tested.p_within(self.margin),
            "by_seed": " ".join(map(repr, gains)),
        }

    def published(self, pair: Pair, numbers: Mapping) -> dict:
        """The paper's difference, and whether our interval excludes it."""
        ours, theirs = (number_of(self.printed, cell) for cell in (pair.cell, pair.other))
        if ours is None or theirs is None:
            return {}
        gain = ours - theirs
        known = numbers.get("low") is not None and numbers["seeds"] > 1
        excluded = not numbers["low"] <= gain <= numbers["high"] if known else None
        return {"published": gain, "excludes_published": excluded}


def main(arguments: list[str] | None = None) -> None:
    """Compare cells, per seed and problem, and judge the comparisons."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--results", type=Path, required=True, help="results/STUDY: plan.json, scores.jsonl")
    files = ResultFiles(parser.parse_args(arguments).results)
    with command_line.errors(ValueError):
        printed = as_cells(read_published(shipped.PUBLISHED))
        plan = read_plan(files.plan)
        scores = selections.with_selected(plan, scored.read_scores(files.scores))
        asked = [*read_claims(shipped.CLAIMS), *questions(plan.questions)]
        rows = comparisons(plan, asked, scores, printed)
        write_table(files.comparisons, Contrast, rows)


if __name__ == "__main__":
    main()
