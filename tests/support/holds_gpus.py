"""A job that says which GPUs it sees, and holds them."""

import os
import time

print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
time.sleep(600)
