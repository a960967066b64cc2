"""Where the tests of training compute: on the CPU, or with MCGRPO_TEST_DEVICE=cuda on a GPU (`make gpu-check`)."""

import os

import torch

ON_GPU = os.environ.get("MCGRPO_TEST_DEVICE") == "cuda"

if ON_GPU:  # laws to the bit need kernels that add in the same order each time
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    for enable in ("enable_flash_sdp", "enable_mem_efficient_sdp", "enable_cudnn_sdp"):
        getattr(torch.backends.cuda, enable)(False)
