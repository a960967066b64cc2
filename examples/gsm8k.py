"""MC-GRPO on GSM8K with Qwen2.5-0.5B-Instruct and LoRA on one consumer GPU, as a script or cell by cell in an editor.

    pip install '/path/to/mcgrpo[train]' peft
    python examples/gsm8k.py --output out

By the sizes of its tensors it takes about 8 GiB of a GPU; it was tried on a CPU only. Without the hub: `--model
FOLDER`, and `--data FOLDER` with train.jsonl and test.jsonl, which have GSM8K's columns.
"""

# %% Settings; in a notebook they are the defaults
import argparse
import sys

import torch
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcgrpo import MCGRPOConfig, MCGRPOTrainer
from mcgrpo.data.prompts import as_prompt
from mcgrpo.rewards import is_accurate, judge, reward_functions

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--model", default="Qwen/Qwen2.5-0.5B-Instruct", help="a hub name, or a folder")
parser.add_argument("--data", help="a folder with train.jsonl and test.jsonl")
parser.add_argument("--output", default="out", help="where the adapter is saved")
parser.add_argument("--estimator", default="median-mad", help="mean-std is GRPO")
parser.add_argument("--steps", type=int, default=200, help="optimizer steps")
parser.add_argument("--completion-length", type=int, default=512, help="tokens at most")
parser.add_argument("--questions", type=int, default=64, help="of the test split, answered before and after")
options = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %% The data: a prompt for the model, and the number after #### for the reward
files = {split: f"{options.data}/{split}.jsonl" for split in ("train", "test")}
data = load_dataset("json", data_files=files) if options.data else load_dataset("openai/gsm8k", "main")


def as_row(row):
    """What the trainer and the reward read: the paper's prompt, and the answer."""
    return {"prompt": as_prompt("gsm8k", row["question"]), "answer": row["answer"].split("####")[-1].strip()}


data = data.map(as_row, remove_columns=data["train"].column_names)
print(data["train"][0])

# %% The trainer
on_gpu = torch.cuda.is_available()
args = MCGRPOConfig(
    output_dir=options.output,
    estimator=options.estimator,
    num_generations=4,  # draws 5 rollouts of each prompt, trains on 4
    per_device_train_batch_size=4,
    gradient_accumulation_steps=8,  # 8 prompts for each optimizer step
    max_completion_length=options.completion_length,
    learning_rate=1e-5,
    loss_type="grpo",
    beta=0.0,  # no KL penalty: rows without an advantage are not computed
    bf16=on_gpu,  # computes in bf16; the weights stay in fp32, as small updates would be lost in bf16
    use_cpu=not on_gpu,
    max_steps=options.steps,
    logging_steps=1,
    save_strategy="no",
    report_to="none",
)
tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side="left")
trainer = MCGRPOTrainer(
    model=AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32),
    processing_class=tokenizer,
    reward_funcs=reward_functions("gsm8k", ["accuracy"]),  # 2.0 for a right answer
    train_dataset=data["train"],
    peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"),
    args=args,
)


# %% What the model answers before
def show_accuracy(when):
    """Print how many of the test questions are answered right, greedily, and the last answer."""
    rows = data["test"].select(range(min(options.questions, len(data["test"]))))
    texts = [tokenizer.apply_chat_template(each, tokenize=False, add_generation_prompt=True) for each in rows["prompt"]]
    inputs = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False).to(trainer.model.device)
    with torch.inference_mode():
        ids = trainer.model.eval().generate(**inputs, do_sample=False, max_new_tokens=options.completion_length)
    answers = tokenizer.batch_decode(ids[:, inputs["input_ids"].size(1) :], skip_special_tokens=True)
    right = sum(is_accurate(each.verdict) for each in judge("gsm8k", answers, rows["answer"]))
    print(f"{when} training: {right} of {len(rows)} right. The last answer:\n{answers[-1]}")


show_accuracy("before")

# %% Train: look at drawn/reward_first, the mean reward of as many rollouts as GRPO draws
trainer.train()
trainer.save_model(options.output)

# %% And after
show_accuracy("after")
