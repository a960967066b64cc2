"""The comparisons of the headline: median against mean at the smallest G, each with its seeds and its control."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import DECODINGS, accuracies, seed_gains
from mcgrpo.analyse.records import GainVerdict
from mcgrpo.report import wording
from mcgrpo.study.methods import METHODS, is_median, label


@dataclass(frozen=True)
class PairedDifference:
    """One paired difference of accuracy: fractions, NaN where there is no number.

    `place` is "setting on benchmark"; `gains` is the difference of each seed, `detectable` the smallest detectable one,
    and `excludes` whether the interval excludes the `published` difference.
    """

    place: str
    method: str
    baseline: str
    num_generations: int
    decoding: str
    is_control: bool
    value: float
    low: float
    high: float
    verdict: GainVerdict | None
    detectable: float
    published: float
    excludes: bool | None
    gains: tuple[float, ...]
    planned: int
    n: int | None

    @property
    def seeds(self) -> int:
        """The number of seeds that both methods have."""
        return len(self.gains)

    @property
    def name(self) -> str:
        """The two methods of the difference."""
        return f"{self.method} − {self.baseline}, G={self.num_generations}"

    @property
    def word(self) -> str:
        """The verdict, or the reason for having none."""
        if pd.isna(self.value):
            return wording.MISSING
        return self.verdict or ("no interval" if pd.isna(self.low) else wording.ONE_SEED)

    @property
    def text(self) -> str:
        """The difference with its interval, in points."""
        return wording.signed(self.value, self.low, self.high)


def at_smallest_g(cells: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of median-centred methods at the smallest G of each, if the study has their baseline."""
    medians = cells[cells.method.map(is_median).astype(bool) & cells.baseline.notna()]
    smallest = medians.groupby(["setting", "benchmark", "method"]).num_generations.transform("min")
    return medians[medians.num_generations == smallest]


def comparisons(summary: pd.DataFrame, gains: pd.DataFrame) -> Iterator[PairedDifference]:
    """The comparisons: sampled before greedy, each median-centred method before its control."""
    cells = accuracies(summary, "in")
    medians = at_smallest_g(cells)
    for _, rows in medians.groupby(["setting", "benchmark"], sort=False):
        order = rows.method.map(list(METHODS).index) * len(DECODINGS) - rows.decoding.map(DECODINGS.index)
        for _, cell in rows.loc[order.sort_values().index].iterrows():
            yield _comparison(cell, gains, is_control=False)
            for _, beside in _controls(cells, cell).iterrows():
                yield _comparison(beside, gains, is_control=True)


def _controls(cells: pd.DataFrame, cell: pd.Series) -> pd.DataFrame:
    """The control of a median-centred cell: another mean-centred method with the same baseline; one row or none."""
    same = ["setting", "benchmark", "num_generations", "measure", "baseline"]
    beside = cells[(cells[same] == cell[same]).all(axis=1)]
    return beside[~beside.method.map(is_median).astype(bool)]


def _comparison(cell: Any, gains: pd.DataFrame, is_control: bool) -> PairedDifference:
    return PairedDifference(
        place=f"{cell.setting} on {cell.benchmark}",
        method=label(cell.method),
        baseline=label(cell.baseline),
        num_generations=cell.num_generations,
        decoding=f"sampled ({cell.measure})" if cell.decoding == "sampled" else "greedy",
        is_control=is_control,
        value=float(cell.difference),
        low=float(cell.difference_low),
        high=float(cell.difference_high),
        verdict=None if pd.isna(cell.difference_verdict) else cell.difference_verdict,
        detectable=float(cell.difference_detectable),
        published=float(cell.published_difference),
        excludes=None if pd.isna(cell.difference_excludes_published) else bool(cell.difference_excludes_published),
        gains=tuple(seed_gains(gains, cell)),
        planned=int(cell.planned),
        n=None if pd.isna(cell.n) else int(cell.n),
    )
