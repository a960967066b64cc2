"""The CPU as a platform of verl, which has none: `VERL_USE_EXTERNAL_MODULES=cpu_platform VERL_PLATFORM=cpu`.

verl's own way to add one. Ray is given a resource of the name that `ray_resource_name` says.
"""

from contextlib import contextmanager
from types import SimpleNamespace

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

# verl asks for a backend of the CPU and one of its device, which torch refuses if these are the same.
_init = torch.distributed.init_process_group
torch.distributed.init_process_group = lambda backend=None, **kwargs: _init("gloo", **kwargs)

torch.Tensor.pin_memory = lambda self, *_: self  # verl asks for it for the reference model


def nothing(*args, **kwargs):
    """What is asked of a GPU alone."""


@PlatformRegistry.register(platform="cpu")
class CPU(PlatformBase):
    device_name, vendor_name = "cpu", "cpu"
    device_module = SimpleNamespace(
        **dict.fromkeys(
            ("set_device", "empty_cache", "synchronize", "ipc_collect", "reset_peak_memory_stats", "manual_seed"),
            nothing,
        ),
        **dict.fromkeys(
            ("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved"), lambda *_: 0
        ),
        is_available=lambda: False,
        current_device=lambda: "cpu",
        get_device_name=lambda *_: "CPU",
        device_count=lambda: 1,
        mem_get_info=lambda *_: (1, 1),
        get_rng_state=torch.get_rng_state,
        set_rng_state=torch.set_rng_state,
    )

    def is_available(self):
        return True

    def current_device(self):
        return "cpu"

    def device_count(self):
        return 1

    def get_device_capability(self, device_index=0):
        return None, None

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "MCGRPO_TEST_DEVICES"

    @contextmanager
    def nvtx_range(self, msg):
        yield

    def ray_resource_name(self):
        return "GPU"  # verl looks for GPUs and NPUs only

    def ray_noset_envvars(self):
        return []

    def is_ipc_supported(self):
        return False

    set_device = synchronize = manual_seed = manual_seed_all = set_allocator_settings = nothing
    empty_cache = profiler_start = profiler_stop = cudart = nothing
