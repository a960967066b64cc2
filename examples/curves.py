"""Reward curves of GRPO and MC-GRPO on a toy, in about two minutes on a CPU: `python examples/curves.py`.

A one-layer model is taught two-step word problems until it solves a part of them, then trained at G=2 with either
estimator. The curves are the mean reward of the first G rollouts of each prompt: thin for a seed, thick for the mean.
Three seeds show how to train, not which is better: `make mini` measures that.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from datasets import Dataset
from matplotlib import pyplot as plt
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.trainer_callback import PrinterCallback

from mcgrpo import MCGRPOConfig, MCGRPOTrainer
from mcgrpo.data.toy.examples import examples
from mcgrpo.data.toy.models import build
from mcgrpo.data.warm_start import WarmStart, warm_start
from mcgrpo.files import write_jsonl
from mcgrpo.rewards import reward_functions

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", default="curves.png")
parser.add_argument("--steps", type=int, default=20, help="optimizer steps of a training (%(default)s)")
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--prompts", type=int, default=80, help="prompts of a step (%(default)s)")
parser.add_argument("--taught", type=int, default=500, help="supervised steps before (%(default)s)")
options = parser.parse_args()


def curve(model: Path, estimator: str, seed: int, output: str) -> list[float]:
    """The mean reward of each step of one training."""
    args = MCGRPOConfig(
        output_dir=output, estimator=estimator, num_generations=2, per_device_train_batch_size=2 * options.prompts,
        max_completion_length=24, max_steps=options.steps, learning_rate=5e-4, beta=0.0, seed=seed, logging_steps=1,
        use_cpu=True, bf16=False, save_strategy="no", report_to="none", disable_tqdm=True,
    )  # fmt: skip
    trainer = MCGRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model),
        processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
        reward_funcs=reward_functions("gsm8k", ["accuracy"]),
        train_dataset=problems,
        args=args,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return [row["drawn/reward_first"] for row in trainer.state.log_history if "drawn/reward_first" in row]


rows = [{"prompt": each.question, "answer": each.answer} for each in examples("two-step", "train", 2000, seed=0)]
problems = Dataset.from_list(rows)
with tempfile.TemporaryDirectory() as folder:
    model = Path(folder) / "model"
    shape = {"hidden_size": 48, "layers": 1, "heads": 1, "intermediate_size": 128}
    build({"architecture": "qwen3", **shape}, base := Path(folder) / "base")
    write_jsonl(data := Path(folder) / "warm.jsonl", examples("two-step", "warm", 6000, seed=0, slips=(0.0, 0.8)))
    warm_start(WarmStart(["warm"], options.taught, 32, 5e-3, "plain", "gsm8k"), base, [data], model)
    for label, estimator in (("GRPO, mean", "mean-std"), ("MC-GRPO, median", "median-mad")):
        curves = np.array([curve(model, estimator, seed, f"{folder}/out") for seed in range(options.seeds)])
        steps = range(1, options.steps + 1)
        (line,) = plt.plot(steps, curves.mean(axis=0), label=label, linewidth=2)
        plt.plot(steps, curves.T, color=line.get_color(), alpha=0.4, linewidth=0.7)
        print(f"{label}: {curves[:, 0].mean():.2f} at the first step, {curves[:, -1].mean():.2f} at the last")
plt.gca().xaxis.get_major_locator().set_params(integer=True)
plt.xlabel("optimizer step")
plt.ylabel("reward of the first G rollouts, G=2")
plt.legend()
plt.savefig(options.output, dpi=150)
