"""Trainings with verl's own trainer on the CPU: a tiny model, and rollouts that are given instead of drawn."""

import json
import os

import pandas as pd
import ray
import torch
import transfer_queue as tq
from ray.util import remove_placement_group
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils.tensordict_utils import list_of_dict_to_tensordict
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry
from verl_batches import config_of

from mcgrpo.engines.verl_trainers import WithoutDropped

PROMPTS, STEPS = 2, 2
RolloutReplicaRegistry.register("given", lambda: RolloutReplica)

SETTINGS = [
    f"data.train_batch_size={PROMPTS}", "data.dataloader_num_workers=0", "data.shuffle=False",
    "actor_rollout_ref.model.use_remove_padding=False", "actor_rollout_ref.model.enable_gradient_checkpointing=False",
    "+actor_rollout_ref.model.override_config.attn_implementation=eager",
    f"actor_rollout_ref.actor.ppo_mini_batch_size={PROMPTS}", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
    "actor_rollout_ref.actor.optim.lr=0.01", "actor_rollout_ref.actor.grad_clip=1000",
    "actor_rollout_ref.actor.use_kl_loss=True", "actor_rollout_ref.actor.kl_loss_coef=0.5",
    "actor_rollout_ref.actor.use_torch_compile=False", "actor_rollout_ref.actor.checkpoint.save_contents=[model]",
    "actor_rollout_ref.actor.strategy=fsdp2", "actor_rollout_ref.ref.strategy=fsdp2",
    "+actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype=fp32",
    "+actor_rollout_ref.ref.fsdp_config.mixed_precision.param_dtype=fp32",
    "actor_rollout_ref.rollout.name=given", "actor_rollout_ref.rollout.nnodes=1",
    "actor_rollout_ref.rollout.calculate_log_probs=False",
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2",
    "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=2", "reward.num_workers=1",
    "trainer.n_gpus_per_node=1", "trainer.device=cpu", "trainer.resume_mode=disable", "trainer.logger=[file]",
    f"trainer.total_training_steps={STEPS}", f"trainer.save_freq={STEPS}", "trainer.val_before_train=False",
    "trainer.test_freq=-1",
]  # fmt: skip


class Given:
    """In place of verl's agent loops: puts given rollouts where these put them."""

    def __init__(self, rollouts):
        self.rollouts = rollouts

    def generate_sequences(self, prompts):
        """`rollouts` are lists over steps and prompts, of pairs (tokens of each output, reward)."""
        groups = self.rollouts[int(prompts["global_steps"]) - 1]
        for uid, group in zip(prompts["uid"], groups, strict=True):
            for session, (outputs, reward) in enumerate(group):
                for index, response in enumerate(outputs):
                    self.put(f"{uid}_{session}_{index}", uid, session, response, reward)
            tq.kv_put(uid, "train", tag={"status": "finished"})

    def put(self, key, uid, session, response, reward):
        prompt = torch.arange(3, 8)
        ids = torch.cat([prompt, torch.tensor(response)])
        mask = torch.ones(len(response), dtype=torch.int64)
        scores = torch.zeros(len(response))
        scores[-1] = reward
        fields = {
            "uid": uid, "session_id": session, "prompts": prompt, "responses": torch.tensor(response),
            "response_mask": mask, "loss_mask": mask, "rm_scores": scores, "input_ids": ids,
            "position_ids": torch.arange(len(ids)), "multi_modal_inputs": {}, "num_turns": 2, "extra_fields": {},
        }  # fmt: skip
        tag = {"status": "success", "prompt_len": len(prompt), "response_len": len(response), "seq_len": len(ids)}
        tag |= {"global_steps": 1, "min_global_steps": 1, "max_global_steps": 1}
        tq.kv_batch_put([key], partition_id="train", fields=list_of_dict_to_tensordict([fields]), tags=[tag])


class OnCPU:
    """Mixed into a trainer of verl: no engine for rollouts, so no weights to hand to one."""

    _enable_hybrid_replicas = False

    on_init_end = on_step_end = on_sample_end = lambda self: None


class Verls(OnCPU, PPOTrainer):
    """verl's own trainer."""


class Ours(WithoutDropped, OnCPU, PPOTrainer):
    """The same without dropped rollouts."""

    engine_mode = "sync"


def cluster():
    """Ray and TransferQueue, as verl's main program starts them; GPUs are only a number to Ray."""
    ray.init(num_cpus=16, num_gpus=16, include_dashboard=False, object_store_memory=200_000_000)
    config = config_of("transfer_queue.backend.SimpleStorage.num_data_storage_units=1")
    tq.init(config.transfer_queue)


def trained(kind, folder, model, rollouts, *overrides):
    """Metrics of each step, the weights after the last one, and what is left in TransferQueue."""
    folder.mkdir()
    prompts = [{"prompt": [{"role": "user", "content": "2 + 2"}], "data_source": "toy"}] * PROMPTS * STEPS
    pd.DataFrame(prompts).to_parquet(folder / "prompts.parquet")
    config = config_of(*SETTINGS, f"actor_rollout_ref.model.path={model}", *overrides)
    config.data.train_files = config.data.val_files = str(folder / "prompts.parquet")
    config.trainer.default_local_dir = str(folder / "saved")
    os.environ["VERL_FILE_LOGGER_PATH"] = str(folder / "metrics.jsonl")
    trainer = kind(config)
    trainer.init()
    trainer.fit(Given(rollouts))
    release(trainer)
    metrics = [json.loads(line)["data"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    saved = next((folder / "saved").rglob("model_world_size_1_rank_0.pt"))
    weights = {name: each.full_tensor() for name, each in torch.load(saved, weights_only=False).items()}
    return metrics, weights, tq.kv_list("train")["train"]


def release(trainer):
    """End the processes of a training: their names in Ray are taken by the next."""
    for worker in trainer.reward_loop_manager.reward_loop_workers:
        ray.kill(worker)
    for pool in trainer.resource_pool_manager.resource_pool_dict.values():
        for group in pool.pgs:
            remove_placement_group(group)
