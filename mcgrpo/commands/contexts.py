"""Whether models hold the lengths that a study asks of them, for `mcgrpo plan` and `mcgrpo doctor`.

What is not known before the prompts are counted is said as a bound; `doctor` counts them where model and data are here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mcgrpo.records import Run
from mcgrpo.study.context import check_training, context_of, room
from mcgrpo.study.hub import HubError, config_json
from mcgrpo.study.model_config import check_stated, completed, folder_of, model_config
from mcgrpo.study.plan import Config, expand
from mcgrpo.study.rows import built_file
from mcgrpo.study.settings import completion_settings

LENGTHS = ("max_prompt_length", "max_completion_length", "vllm_max_model_length", "use_vllm", "chat_template_kwargs")
"""Keys of `training` that decide whether a prompt fits."""
Finding = tuple[str, str, str]
"""Status, finding and remedy, as `mcgrpo.commands.doctor.Check` has them."""


class Drawn(NamedTuple):
    """The completions of a model on a benchmark, under the settings of a study."""

    model: str
    benchmark: str
    prompt: str
    settings: dict[str, Any]


def drawn(config: Config) -> list[Drawn]:
    """Every model and benchmark of the study, once for each prompt."""
    found = {}
    for entry in expand(config).values():
        for benchmark in entry.evaluated:
            settings = completion_settings(config, entry.run, benchmark)
            key = (entry.run.model, benchmark, entry.run.prompt)
            found[key] = Drawn(*key, settings)
    return [*found.values()]


def notes(config: Config) -> Iterator[str]:
    """The lines of `mcgrpo plan`: where completions will be cut by a context."""
    everything = drawn(config)
    for name in config["models"]:
        context = context_of(model_config(config, name))
        if cut := [each for each in everything if each.model == name and _bound(each, context)]:
            lengths = "; ".join(f"{each.benchmark}: {_bound(each, context)}" for each in cut)
            yield f"Tokens of a completion of {name}, beside its prompt: {lengths}."


def _bound(each: Drawn, context: int | None) -> str:
    """What is said before prompts are counted; empty where the limit alone holds what is asked."""
    limit, _ = room(context, each.settings.get("vllm_max_model_length"))
    asked = each.settings["max_new_tokens"]
    return f"{asked:,} asked, fewer than {limit:,} fit" if limit is not None and asked >= limit else ""


def check_contexts(config: Config) -> Iterator[Finding]:
    """A finding or more for every model that is not built here."""
    runs = [entry.run for entry in expand(config).values()]
    used = {run.model for run in runs}
    for name, spec in config["models"].items():
        if name not in used or ("toy" in spec and folder_of(config, name) is None):
            continue
        try:
            context = context_of(_config(config, name))
            own = _distinct([run for run in runs if run.model == name and run.estimator])
            for run in own:
                check_training(run.training, context)
            found = [*_of_trainings(config, name, own), *_of_benchmarks(config, name, context)]
        except ValueError as error:
            yield "error", f"{name}: {error}", "change the lengths, or what the study states of the model"
            continue
        if context is None:
            yield (
                "warning",
                f"{name}: not known, so its jobs check lengths when they start",
                f"state models.{name}.config",
            )
        elif not found:
            yield "ok", f"{name}: {context:,} tokens, more than is asked for", ""
        yield from (("warning", f"{name}: {line}", remedy) for line, remedy in found)


def _config(config: Config, name: str) -> dict[str, Any]:
    """The model's config: of its folder, else as the hub has it, else as the study states it."""
    spec = config["models"][name]
    if "hub" in spec and folder_of(config, name) is None:
        try:
            real = config_json(spec, timeout=5.0)
        except HubError:  # which the check of the repository says
            return model_config(config, name)
        check_stated(name, spec.get("config", {}), real)
        return completed(real)
    return model_config(config, name)


def _distinct(runs: list[Run]) -> list[Run]:
    """The first of the runs that ask for the same lengths of the same prompts."""
    found: dict[str, Run] = {}
    for run in runs:
        found.setdefault(repr((run.dataset, run.prompt, [run.training.get(key) for key in LENGTHS])), run)
    return [*found.values()]


def _both(config: Config, name: str, dataset: str) -> tuple[Path, Path] | None:
    """The folder of a model and the file of a data set, where both are here."""
    folder, data = folder_of(config, name), built_file(config, "datasets", dataset)
    return (folder, data) if folder and data else None


def _of_trainings(config: Config, name: str, runs: list[Run]) -> Iterator[tuple[str, str]]:
    """What is left out of trainings; raises for a prompt that does not fit."""
    from mcgrpo.train.lengths import fitting

    for run in runs:
        if here := _both(config, name, run.dataset):
            _, left_out = fitting(run, *here)
            if left_out:
                most = run.training["max_prompt_length"]
                yield f"{run.dataset}: {left_out} prompts have over {most} tokens", "not trained on (max_prompt_length)"


def _of_benchmarks(config: Config, name: str, context: int | None) -> Iterator[tuple[str, str]]:
    """Where completions are cut by the context; raises for a prompt that leaves no token."""
    from mcgrpo.generate.engines import load_tokenizer
    from mcgrpo.generate.lengths import fitted

    for each in [each for each in drawn(config) if each.model == name]:
        if here := _both(config, name, each.benchmark):
            folder, data = here
            fit = fitted(each.settings, folder, data, each.prompt, load_tokenizer(folder))["max_new_tokens"]
            asked = each.settings["max_new_tokens"]
            bound = f"{asked:,} asked, {fit:,} fit" if fit < asked else ""
        else:
            bound = _bound(each, context)
        if bound:
            yield f"{each.benchmark}: tokens of a completion: {bound} its context", "tables say so"
