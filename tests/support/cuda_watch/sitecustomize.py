"""Imported by Python as it starts: writes down who asks CUDA for GPUs before vLLM is imported.

torch's own documentation says that such a process cannot fork one that uses a GPU, unless NVML is asked
("multiprocessing poison fork note"). It is watched in Python, so that it is seen without a GPU and without CUDA, too.
"""

import os
import sys
import threading

TORCH_CUDA = os.path.join("torch", "cuda", "__init__.py")  # noqa: PTH118
ASKING = {"is_available", "init", "_lazy_init", "current_device", "set_device", "get_device_properties"}


def watch(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name in ASKING and code.co_filename.endswith(TORCH_CUDA):
        by_nvml = code.co_name == "is_available" and os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK") == "1"
        if not by_nvml and "vllm" not in sys.modules:
            caller = frame.f_back.f_code
            with open(os.environ["CUDA_WATCH"], "a") as file:  # noqa: PTH123
                file.write(f"torch.cuda.{code.co_name} of {caller.co_filename}:{caller.co_name}\n")


if "CUDA_WATCH" in os.environ:
    sys.setprofile(watch)
    threading.setprofile(watch)
