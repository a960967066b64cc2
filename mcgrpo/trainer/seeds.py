"""Seeds made from text, and a context that restores random states."""

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_of(key: str, bits: int = 32) -> int:
    """A seed of at most 64 bits, hashed from `key`."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> (64 - bits)


@contextmanager
def random_state(device: torch.device, seed: int | None = None) -> Iterator[None]:
    """Within it, random states start from `seed`, if given; after it, they are restored.

    Those of Python, NumPy, and torch on the CPU and on `device`.
    """
    from transformers import set_seed

    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            if seed is not None:
                set_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
