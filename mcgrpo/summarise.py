"""scores.csv to summary.csv: over the seeds of each cell, and paired with the cell's baseline.

python -m mcgrpo.summarise --scores scores.csv --output summary.csv
"""

import argparse

import pandas as pd

from mcgrpo.files import write_csv
from mcgrpo.frames import method_order, read_frame
from mcgrpo.methods import METHODS, UNTRAINED
from mcgrpo.records import Cell, Score
from mcgrpo.stats import mean_interval, paired_difference

KEY = ["setting", "variant", "role", "benchmark", "measure", "num_generations", "method"]


def summarise(scores: pd.DataFrame) -> list[Cell]:
    """One `Cell` for each setting, method, G, variant, benchmark, role and measure, in a fixed order.

    Args:
        scores: one row per `Score`.

    Raises:
        ValueError: naming the cell, for a seed scored twice, seeds that differ in `n`, a value that is not finite
            or an unknown method.
    """
    groups = dict(iter(scores.sort_values("seed").groupby(KEY)))
    values = {key: _by_seed(key, rows) for key, rows in groups.items()}
    order = sorted(groups, key=lambda key: (*key[:-1], method_order(key[-1])))
    return [_cell(key, _problems(key, groups[key]), values) for key in order]


def _name(key: tuple) -> str:
    return ", ".join(f"{field} {value}" for field, value in zip(KEY, key, strict=True))


def _by_seed(key: tuple, rows: pd.DataFrame) -> dict[int, float]:
    if (twice := rows.seed.duplicated()).any():
        raise ValueError(f"{_name(key)}: seed {rows.seed[twice].iloc[0]} is scored twice")
    return dict(zip(rows.seed.tolist(), rows.value.tolist(), strict=True))


def _problems(key: tuple, rows: pd.DataFrame) -> int:
    if rows.n.nunique() > 1:
        each = ", ".join(f"{row.n} at seed {row.seed}" for row in rows.itertuples())
        raise ValueError(f"{_name(key)}: seeds differ in n ({each})")
    return int(rows.n.iloc[0])


def _cell(key: tuple, n: int, values: dict[tuple, dict[int, float]]) -> Cell:
    fields = dict(zip(KEY, key, strict=True)) | {"num_generations": int(key[KEY.index("num_generations")])}
    baseline = METHODS[key[-1]].baseline if key[-1] != UNTRAINED else None
    try:
        own = mean_interval(list(values[key].values()))
        paired = paired_difference(values[key], values.get((*key[:-1], baseline), {})) if baseline else None
    except ValueError as error:
        raise ValueError(f"{_name(key)}: {error}") from None
    return Cell(
        **fields,
        seeds=own.n,
        n=n,
        mean=own.mean,
        low=own.low,
        high=own.high,
        baseline=baseline,
        difference=paired and paired.mean,
        difference_low=paired and paired.low,
        difference_high=paired and paired.high,
        difference_seeds=paired and paired.n,
    )


def main(arguments: list[str] | None = None) -> None:
    """Read scores, write the summary."""
    parser = argparse.ArgumentParser(description="Summarise scores over seeds.")
    parser.add_argument("--scores", required=True, help="scores.csv, one Score a row")
    parser.add_argument("--output", required=True, help="summary.csv, one Cell a row")
    options = parser.parse_args(arguments)
    try:
        write_csv(options.output, Cell, summarise(read_frame(options.scores, Score)))
    except ValueError as error:
        raise SystemExit(f"summarise: {error}") from None


if __name__ == "__main__":
    main()
