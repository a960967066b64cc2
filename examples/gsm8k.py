"""MC-GRPO on GSM8K, on one GPU: `python examples/gsm8k.py --model Qwen/Qwen3-0.6B --output out`.

`--data FOLDER` reads FOLDER/train.jsonl, with GSM8K's columns, instead of the data set on the hub.
"""

import argparse

import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo import MCGRPOConfig, MCGRPOTrainer
from mcgrpo.data.prompts import as_prompt
from mcgrpo.rewards import reward_functions

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", default="Qwen/Qwen3-0.6B", help="a hub name, or a folder")
parser.add_argument("--data", help="a folder with train.jsonl")
parser.add_argument("--output", required=True)
parser.add_argument("--estimator", default="median-mad")
parser.add_argument("--steps", type=int, default=-1, help="optimizer steps; default: one epoch")
parser.add_argument("--completion-length", type=int, default=512, help="tokens at most")
options = parser.parse_args()

source = {"path": "json", "data_files": f"{options.data}/train.jsonl"} if options.data else {"path": "openai/gsm8k"}
dataset = load_dataset(**source, split="train", **({} if options.data else {"name": "main"}))


def as_row(row):
    """The prompt for the model, and the number after #### for the reward."""
    return {"prompt": as_prompt("gsm8k", row["question"]), "answer": row["answer"].split("####")[-1].strip()}


on_gpu = torch.cuda.is_available()
args = MCGRPOConfig(
    output_dir=options.output,
    estimator=options.estimator,
    num_generations=4,  # draws 5 rollouts per prompt, trains on 4
    per_device_train_batch_size=8,
    gradient_accumulation_steps=4,  # 8 prompts per optimizer step
    max_completion_length=options.completion_length,
    learning_rate=1e-6,
    loss_type="grpo",
    beta=0.0,  # no KL penalty: rows without an advantage are not computed
    bf16=on_gpu,
    use_cpu=not on_gpu,
    max_steps=options.steps,
    logging_steps=1,
    save_strategy="no",
    report_to="none",
)
trainer = MCGRPOTrainer(
    model=AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32),  # bf16 by autocast: see docs
    processing_class=AutoTokenizer.from_pretrained(options.model, padding_side="left"),
    reward_funcs=reward_functions("gsm8k", ["accuracy"]),
    train_dataset=dataset.map(as_row, remove_columns=dataset.column_names),
    args=args,
)
trainer.train()
trainer.save_model(options.output)
