"""A job beside a vLLM server: waits for it as TRL does, draws from it with TRL's client. `FILE [SECONDS]`."""

import json
import os
import sys
import time
from pathlib import Path

from trl.generation.vllm_client import VLLMClient

from mcgrpo.train.vllm_server import settled
from mcgrpo.trainer.vllm import prompt_by_prompt

PROMPTS = [[5, 6, 7], [5, 6, 7], [8, 9]]


def drawn(key):
    """Three completions of each prompt."""
    answer = prompt_by_prompt(client.generate, PROMPTS, {"key": key}, n=3, max_tokens=8)
    assert answer["prompt_ids"] == PROMPTS and len(answer["logprobs"]) == 9
    return answer["completion_ids"]


training = settled({"use_vllm": True, "vllm_mode": "server"})
client = VLLMClient(base_url=training["vllm_server_base_url"], connection_timeout=500)
found = {
    "completions": [drawn(key) for key in ("0/train/0/0/0", "0/train/0/0/0", "1/train/0/0/0")],
    "devices": os.environ["CUDA_VISIBLE_DEVICES"],
    "workers": client.get_world_size(),
    "engine": client.get_server_info()["weight_transfer_config"],
}
Path(sys.argv[1]).write_text(json.dumps(found))
time.sleep(float(sys.argv[2]))
