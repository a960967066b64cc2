"""verl's configuration and batches, made as verl makes them."""

from pathlib import Path

import numpy as np
import torch
import verl
from hydra import compose, initialize_config_dir
from tensordict import TensorDict
from verl import DataProto

TOKENS = 6


def config_of(*overrides):
    """verl's own configuration, with overrides as on its command line."""
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer/config"), version_base=None):
        return compose("ppo_trainer", overrides=list(overrides))


def batch_of(rewards, uids, lengths=None):
    """verl's batch of finished rollouts: the reward of each at its last token, as its agent loop puts it there."""
    lengths = [1 + row % TOKENS for row in range(len(uids))] if lengths is None else lengths
    mask = torch.zeros(len(uids), TOKENS, dtype=torch.int64)
    scores = torch.zeros(len(uids), TOKENS)
    for row, (reward, length) in enumerate(zip(rewards, lengths, strict=True)):
        mask[row, :length] = 1
        scores[row, length - 1] = reward
    tensors = {"response_mask": mask, "token_level_scores": scores, "token_level_rewards": scores.clone()}
    data = DataProto(batch=TensorDict(tensors, batch_size=len(uids)))
    data.non_tensor_batch["uid"] = np.array(uids, dtype=object)
    return data
