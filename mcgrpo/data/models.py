"""Build or download a model: `python -m mcgrpo.data.models --spec JSON --output FOLDER`.

The spec is the study's entry under `models`: `toy` (built here) or `hub` (with an optional `revision`).
"""

import json
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.files import write_json
from mcgrpo.study.hub import HubError, commit, named

IGNORED = ["*.bin", "*.pth", "original/*"]
"""Weights in formats other than safetensors."""


def fetch(spec: dict[str, Any], output: Path) -> None:
    """Download a model from the hub and record the commit of its revision beside the weights.

    Raises:
        HubError: if the download fails, in one line.
    """
    from huggingface_hub import snapshot_download

    revision = commit("models", spec)
    with named(spec["hub"]):
        snapshot_download(spec["hub"], revision=revision, local_dir=output, ignore_patterns=IGNORED)
    write_json(output / "source.json", {**spec, "commit": revision})


def main() -> None:
    """Build or download one model of a study."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--spec", type=json.loads, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if "hub" in options.spec:
        try:
            fetch(options.spec, options.output)
        except HubError as error:
            raise SystemExit(f"error: model {error}") from None
    else:
        import torch

        from mcgrpo.data.toy.models import build

        torch.set_num_threads(options.threads)
        build(options.spec["toy"], options.output)


if __name__ == "__main__":
    main()
