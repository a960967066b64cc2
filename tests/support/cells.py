"""Cells of a summary and the pairs that they are in, with known numbers."""

import dataclasses

from mcgrpo.analyse.frames import KINDS, PAIRED, read_cells
from mcgrpo.analyse.measures import decoding_of
from mcgrpo.analyse.records import Cell, Contrast
from mcgrpo.estimators.table import BUILT_IN
from mcgrpo.study.methods import METHODS, UNTRAINED
from mcgrpo.study.paths import ResultFiles
from mcgrpo.sums import write_table

MARGIN = 0.01
OF_CELLS = [field.name for field in dataclasses.fields(Cell)]
OF_PAIRS = [f"{kind}{ending}" for kind in KINDS for ending in PAIRED]
BESIDE = [*OF_PAIRS, *(name for more in KINDS.values() for name in more.values()), "equivalence_margin"]
Row = dataclasses.make_dataclass("Row", [*OF_CELLS, *BESIDE], frozen=True)
"""A cell with its pairs, as `read_cells` has it."""
EMPTY = dict.fromkeys([*OF_CELLS, *BESIDE])


def cell(method, budget, mean=None, *, half=0.02, gain=None, change=None, seeds=None, **fields) -> Row:
    """A greedy cell of toy_a on sums: intervals `half` wide on either side; `gain` and `change` are (value, low, high).

    Without a mean it is a planned cell of which nothing has been run.
    """
    planned = 1 if method == UNTRAINED else 3
    seeds = (0 if mean is None else planned) if seeds is None else seeds
    there = mean is not None
    plain = {
        "setting": "toy_a",
        "method": method,
        "num_generations": budget,
        "variant": "default",
        "benchmark": "sums",
        "role": "in",
        "measure": "greedy",
        "planned": planned,
        "seeds": seeds,
        "n": 100 if there else None,
        "mean": mean,
        "low": mean - half if there and half is not None else None,
        "high": mean + half if there and half is not None else None,
        "over": ("problems" if seeds == 1 else "seeds and problems") if there and half is not None else None,
        "baseline": METHODS[method].baseline if method in METHODS else None,
        "extra_rollouts": BUILT_IN[METHODS[method].estimator].extra_rollouts if method in METHODS else 0,
    }
    for name, paired in (("difference", gain), ("change", change)):
        if paired:
            plain |= dict(zip((name, f"{name}_low", f"{name}_high"), paired, strict=True)) | {f"{name}_seeds": seeds}
            plain |= {
                f"{name}_verdict": verdict(*paired[1:]),
                f"{name}_detectable": 0.034,
                "equivalence_margin": MARGIN,
            }
    found = EMPTY | plain | fields
    is_evaluation = found["role"] in ("in", "out")
    return Row(**found | {"decoding": decoding_of(found["measure"]) if is_evaluation else None})


def verdict(low, high):
    """Of an interval that is not too near the margin for one at 90% to say something else."""
    if low is None:
        return None
    if low > 0 or high < 0:
        return "better" if low > 0 else "worse"
    return "equivalent" if low > -MARGIN and high < MARGIN else "inconclusive"


def seconds(method, budget, value=None, **fields) -> Row:
    plain = {"benchmark": "train", "role": "train", "measure": "seconds", "low": None, "high": None, "over": None}
    return cell(method, budget, value, **plain | fields)


def flip(measure, rate, **fields) -> Row:
    return cell("none", 0, rate, **{"role": "flips", "measure": measure, "over": "problems"} | fields)


def study() -> list[Row]:
    """MC-GRPO: better at G=2 (sampled), worse greedy, missing at G=4; the control: inconclusive against GRPO."""
    sampled = {"measure": "avg@4"}
    rows = [cell("none", 0, 0.3), cell("none", 0, 0.1, **sampled)]
    for budget in (4, 2):
        rows += [cell("grpo", budget, 0.5), cell("grpo", budget, 0.4, **sampled)]
    rows += [cell("mc-grpo", 4), cell("mc-grpo", 4, **sampled)]
    rows += [cell("mc-grpo", 2, 0.44, gain=(-0.06, -0.07, -0.055))]
    rows += [cell("mc-grpo", 2, 0.45, gain=(0.05, 0.045, 0.06), **sampled)]
    wide = (0.01, -0.1, 0.12)
    rows += [cell("grpo-plus1", 2, 0.51, gain=wide), cell("grpo-plus1", 2, 0.41, gain=wide, **sampled)]
    return [
        *rows,
        seconds("grpo", 4, 40.0),
        seconds("grpo", 2, 20.0),
        seconds("mc-grpo", 4),
        seconds("mc-grpo", 2, 23.0),
        seconds("grpo-plus1", 2, 24.0),
    ]


def pairs_of(rows):
    """The rows of comparisons.csv that cells are in: a difference where they have a baseline, and so on."""
    for row in rows:
        others = {
            "difference": row.baseline and {"method": row.baseline},
            "change": row.variant != "default" and {"variant": "default"},
            "same_rollouts": row.same_rollouts_generations and {"num_generations": row.same_rollouts_generations},
        }
        for kind, other in others.items() if row.decoding else ():
            if not other:
                continue
            own = {name: getattr(row, name) for name in ("method", "num_generations", "variant", "measure")}
            numbers = {ending[1:] or "value": getattr(row, f"{kind}{ending}") for ending in PAIRED}
            numbers |= {column: getattr(row, name) for column, name in KINDS[kind].items() if column[:5] != "other"}
            place = {name: getattr(row, name) for name in ("setting", "benchmark", "role", "decoding")}
            beside = {f"other_{name}": value for name, value in (own | other).items()}
            yield Contrast("main", kind, **place, **own, **beside, **numbers, unit="fraction", at_least=0.0,
                           equivalence_margin=MARGIN)  # fmt: skip


def write_cells(files, rows, more=()):
    """Write summary.csv, and comparisons.csv with more rows."""
    rows = [*rows]
    write_table(files.summary, Cell, [Cell(**{name: getattr(row, name) for name in OF_CELLS}) for row in rows])
    write_table(files.comparisons, Contrast, [*pairs_of(rows), *more])


def frame(folder, rows):
    """The summary beside its pairs as every reader gets it: through the files."""
    write_cells(ResultFiles(folder), rows)
    return read_cells(ResultFiles(folder))
