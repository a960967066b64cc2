"""`mcgrpo plan --budget HOURS`: the part of a study that decides most of the paper's claims, as an overlay file."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tabulate import tabulate

from mcgrpo import shipped
from mcgrpo.analyse.claims import ClaimError, bounds, read_claims
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.scored import planned_seeds
from mcgrpo.analyse.stats import POWER
from mcgrpo.commands.forecast.budget import MOST_SEEDS, CellName, Choice, choose, seeds_needed
from mcgrpo.commands.forecast.effects import Spread, problems_of
from mcgrpo.commands.forecast.power import Planned, planned
from mcgrpo.commands.forecast.sizes import Sizes
from mcgrpo.commands.forecast.times import times, work
from mcgrpo.files import write_text
from mcgrpo.study.check import StudyError
from mcgrpo.study.methods import UNTRAINED, method_order
from mcgrpo.study.plan import Config, as_json, expand
from mcgrpo.study.variants import DEFAULT, flips_of


class Within(NamedTuple):
    """The answer: what is chosen, what could have been, and why the rest was not.

    Args:
        options: what decides each claim in each setting.
        needed: claim and setting -> the fewest seeds that decide it.
        hours: device-hours of one seed of a cell, of those that are known.
        left: claim -> why it cannot be planned.
    """

    choice: Choice
    options: list[Planned]
    needed: dict[tuple[str, str], int | None]
    hours: dict[CellName, float]
    left: dict[str, str]


def within(config: Config, sizes: Sizes, spread: Spread, budget: float, names: Sequence[str] = ()) -> Within:
    """What to train for a budget of device-hours.

    Args:
        names: ids of the claims to decide; none for all.

    Raises:
        StudyError: for a claim that does not exist.
    """
    try:
        claims = read_claims(shipped.CLAIMS)
    except ClaimError as error:
        raise StudyError(str(error)) from None
    if unknown := sorted(set(names) - {claim.id for claim in claims}):
        raise StudyError(f"--claims {unknown[0]}: no such claim in {shipped.CLAIMS.name}")
    claims = [claim for claim in claims if not names or claim.id in names]
    known = {each: problems_of(config, sizes, each) for each in config["datasets"]}
    problems = {each: count for each, count in known.items() if count}
    cells = sorted(cell for cell in planned_seeds(as_json(config)) if cell.role in ("in", "out"))
    options, left = planned(claims, cells, as_cells(read_published(shipped.PUBLISHED)), problems)
    needed = {(each.claim.id, each.setting): seeds_needed(each, spread) for each in options}
    hours = _hours(config)
    return Within(choose(options, needed, hours, budget), options, needed, hours, left)


def _hours(config: Config) -> dict[CellName, float]:
    trainings = [entry.run for entry in expand(config).values() if entry.run.method != UNTRAINED]
    known, devices = times(config, trainings), max(config.get("gpus", 0), 1)
    return {
        (run.setting, run.method, run.num_generations, run.variant): time.seconds * devices / 3600
        for run in trainings
        if (time := known.get(work(config, run)))
    }


def overlay(config: Config, choice: Choice) -> dict[str, Any]:
    """The study file that trains what is chosen and nothing else, to be merged over the study's own files."""
    grids: dict[tuple[str, str, int, bool], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    out = {cell for chosen, _ in choice.decided.values() for cell in chosen.cells if _is_out(chosen)}
    for cell, number in choice.seeds.items():
        setting, method, generations, variant = cell
        grids[setting, variant, number, cell in out][generations].add(method)
    experiments: dict[str, Any] = dict.fromkeys(config["experiments"])
    for (setting, variant, number, is_out), methods in sorted(grids.items()):
        by_methods: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for generations, names in sorted(methods.items()):
            by_methods[tuple(sorted(names, key=method_order))].append(generations)
        for names, several in by_methods.items():
            experiment = {"settings": [setting], "methods": list(names), "num_generations": several}
            experiment["seeds"] = seeds_of(config, number)
            experiment |= _variant(variant) | ({"evaluate": ["in", "out"]} if is_out else {})
            names = (f"budget-{index}" for index in itertools.count(1))
            experiments[next(name for name in names if name not in experiments)] = experiment
    return {"experiments": experiments}


def _is_out(chosen: Planned) -> bool:
    return any(key.role == "out" for key in chosen.weights)


def _variant(variant: str) -> dict[str, Any]:
    if flips := flips_of(variant):
        return {"injected_flips": {flips.rule: [flips.rate]}}
    return {"variants": [variant]} if variant != DEFAULT else {}


def seeds_of(config: Config, number: int) -> list[int]:
    """The study's first seeds, and the smallest numbers that are none of them."""
    more = (seed for seed in range(number + len(config["seeds"])) if seed not in config["seeds"])
    return [*config["seeds"], *more][:number]


def write(path: Path, config: Config, selection: Within, spread: Spread, base: Sequence[Path]) -> None:
    """Write the overlay, with what it decides as comments."""
    over = " ".join(map(str, base)) or "config/config.yaml"
    head = [f"Merged over {over}: snakemake --configfile {over} {path}", *listing(config, selection, spread)]
    comment = "".join(f"# {line}".rstrip() + "\n" for part in head for line in part.splitlines())
    write_text(path, comment + yaml.safe_dump(overlay(config, selection.choice), sort_keys=False, width=110))


def listing(config: Config, selection: Within, spread: Spread) -> Iterator[str]:
    """What is chosen, with its power, for people."""
    choice, unit = selection.choice, "GPU-hours" if config.get("gpus", 0) else "core-hours"
    trainings = sum(choice.seeds.values())
    count = len({each.claim.id for each in selection.options} | selection.left.keys())
    yield f"{len(choice.decided)} of {count} claims for {choice.hours:,.1f} {unit} of training ({trainings} trainings):"
    rows = [_row(each, seeds, spread) for each, seeds in choice.decided.values()]
    headers = ["claim", "in", "paper", "to show", "seeds", "detectable", "power"]
    if rows:
        yield tabulate(rows, headers, "simple", disable_numparse=True)
    yield (
        "paper: the claim's endpoint by the numbers printed for the setting, else over the paper's settings.\n"
        f"detectable: distance from the bound that is seen with power {POWER:.0%}.\n"
        "Each is decided in one setting, for that setting alone; evaluation is not in the hours."
    )
    yield (
        f"Gains have a standard deviation of {100 * spread.seeds:.2g} points between seeds (--seed-sd, --spread), "
        f"{100 * spread.problems:.2g} between problems; methods differ in {100 * spread.disagreement:.2g}% of answers."
    )
    if rest := dict(_undecided(selection, unit)):
        yield "Not decided:"
        yield tabulate(rest.items(), tablefmt="plain")


def _row(chosen: Planned, seeds: int, spread: Spread) -> list[str]:
    measured = [chosen.claim.id, chosen.setting, f"{chosen.value:.2f}", bounds(chosen.comparison), str(seeds)]
    return [*measured, f"{chosen.detectable(seeds, spread):.1f}", f"{chosen.power(seeds, spread):.0%}"]


def _undecided(selection: Within, unit: str) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys(each.claim.id for each in selection.options):
        if name in selection.choice.decided:
            continue
        own = [each for each in selection.options if each.claim.id == name]
        timed = [each for each in own if each.cells <= selection.hours.keys()]
        prices = [
            (seeds * sum(selection.hours[cell] for cell in each.cells), seeds, each.setting)
            for each in timed
            if (seeds := selection.needed[name, each.setting])
        ]
        if prices:
            hours, seeds, setting = min(prices)
            yield name, f"alone takes {hours:,.1f} {unit}: {seeds} seeds of {setting}"
        elif not timed:
            yield name, "no time is known of some of its trainings"
        else:
            yield name, f"{MOST_SEEDS} seeds do not suffice in any setting, with the paper's numbers"
    yield from selection.left.items()
