"""The hub, asked for two things: the commit that a revision stands for, and a model's config.json."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CONFIG = "config.json"
COMMIT = re.compile("[0-9a-f]{40}")


class HubError(ValueError):
    """The hub cannot be asked, or does not have what it was asked for; one line that names it."""


def is_pinned(spec: dict[str, Any]) -> bool:
    """Whether a model or data set of a study names its commit; a branch or a tag may move."""
    return bool(COMMIT.fullmatch(str(spec.get("revision"))))


@contextmanager
def named(what: str, *others: type[Exception]) -> Iterator[None]:
    """Turn errors of the hub's client (its own, the network's, httpx's, `others`) into one line, which names `what`."""
    from httpx import HTTPError

    try:
        yield
    except (OSError, ValueError, HTTPError, *others) as error:
        raise HubError(f"{what}: {next(iter(str(error).splitlines()), type(error).__name__)}") from None


def config_json(spec: dict[str, Any], timeout: float = 10.0) -> dict[str, Any]:
    """The config.json of an entry under `models`; asked for once, nothing is kept.

    Raises:
        HubError: where it cannot be had within `timeout` seconds.
    """
    from huggingface_hub import get_session, hf_hub_url
    from huggingface_hub.utils import build_hf_headers

    with named(spec["hub"]):
        url = hf_hub_url(spec["hub"], CONFIG, revision=spec.get("revision"))
        answer = get_session().get(url, headers=build_hf_headers(), timeout=timeout, follow_redirects=True)
        return answer.raise_for_status().json()


def commit(kind: str, spec: dict[str, Any]) -> str:
    """The commit of an entry under `models` or `datasets`; the hub is asked only where the entry does not name it.

    Raises:
        HubError: where the hub cannot be asked, or does not know the repository or revision.
    """
    if is_pinned(spec):
        return spec["revision"]
    from huggingface_hub import HfApi

    ask = HfApi().model_info if kind == "models" else HfApi().dataset_info
    with named(spec["hub"]):
        return ask(spec["hub"], revision=spec.get("revision")).sha
