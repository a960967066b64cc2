"""What a study's answer rests on, written down before it runs: the key `primary` of a study file."""

from collections.abc import Iterable

from mcgrpo.records import PlannedRun, Primary, PrimaryComparison
from mcgrpo.study.settings import Config, StudyError
from mcgrpo.study.variants import DEFAULT

METHOD, CONTROL, MEAN = "mc-grpo", "grpo-plus1", "grpo"
"""The method that is asked about, its control (as many rollouts, centred on the mean), and the mean at G rollouts."""


def primary(config: Config, entries: Iterable[PlannedRun]) -> Primary:
    """The `measure` of the primary endpoint, and the planned `comparisons`.

    Each of these has a `baseline`, `num_generations`, and the `settings` that train `METHOD` and this baseline there
    and evaluate both in distribution. Without the key: all of them, in sampled accuracy if the study samples. What the
    key names and an overlay leaves out is left out here, too.

    Raises:
        StudyError: naming the key that leaves nothing of what the study compares.
    """
    given, samples = config.get("primary", {}), config["evaluation"]["samples"]
    if given.get("decoding") == "sampled" and not samples:
        raise StudyError("primary.decoding: 'sampled', but evaluation.samples is 0")
    evaluated = [entry.run for entry in entries if "in" in entry.evaluated.values()]
    cells = {(run.setting, run.num_generations, run.method) for run in evaluated if run.variant == DEFAULT}
    compared = [
        (baseline, size, setting)
        for baseline in (CONTROL, MEAN)
        for setting, size, method in sorted(cells)
        if method == METHOD and (setting, size, baseline) in cells
    ]
    for place, key in ((2, "settings"), (1, "num_generations")):
        kept = [each for each in compared if each[place] in given.get(key, [each[place]])]
        if compared and not kept:
            there = ", ".join(map(str, dict.fromkeys(each[place] for each in compared)))
            raise StudyError(f"primary.{key}: {given[key]}, but the study compares {METHOD} at {there}")
        compared = kept
    settings: dict[tuple[str, int], list[str]] = {}
    for baseline, size, setting in compared:
        settings.setdefault((baseline, size), []).append(setting)
    measure = f"avg@{samples}" if samples and given.get("decoding") != "greedy" else "greedy"
    return Primary(measure, [PrimaryComparison(baseline, size, names) for (baseline, size), names in settings.items()])
