"""What weights are cast to, as torch does it."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Casts(TorchDispatchMode):
    """Counts the casts of some weights, and the bytes of those that are still held."""

    def __init__(self, weights):
        self.of, self.made = {weight.data_ptr() for weight in weights}, []
        super().__init__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and args[0].data_ptr() in self.of:
            self.made.append((weakref.ref(result.untyped_storage()), result.nbytes))
        return result

    @property
    def number(self):
        return len(self.made)

    @property
    def held(self):
        return sum(size for storage, size in self.made if storage() is not None)
