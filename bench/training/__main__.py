"""`python -m bench.training`: the time of an optimizer step with TRL's mean, our mean and our median.

A model of 20 million parameters with random weights draws completions of 128 tokens, on one CPU thread, without a KL
penalty. All contenders take turns in one process, in another order each round. Writes training.csv (a row per
measurement) and training.md, in about seven minutes. Seconds are of processor time, to which other programs add little.
Weights are in fp32; with `--bf16` autocast computes in bf16.
"""

import argparse
import random
import tempfile
import time
from datetime import date
from pathlib import Path

import pandas as pd
import torch
from transformers.utils import logging

from bench.training.measure import CONTENDERS, Task, train
from bench.training.task import prompts_of, reward_of, save_model

SHAPE = {
    "vocab_size": 16384,
    "hidden_size": 384,
    "intermediate_size": 1152,
    "num_hidden_layers": 8,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
SMALL = SHAPE | {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1}
SETTINGS = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "learning_rate": 1e-6, "beta": 0.0}
PROMPTS_PER_STEP = 5
SHARES = (0.2, 0.6)
"""Of groups whose rewards are equal."""
TURNS = (("trl", SHARES[0]), *((name, share) for name in ("mean", "mc") for share in SHARES))
"""TRL computes every row, so its time does not depend on the share."""


def turn(task: Task, size: int, name: str, share: float) -> dict[str, float]:
    """One step: its seconds, and the share of the rows of the update without an advantage."""
    reward = reward_of(share, task.prompts_per_step)
    (seconds,), (log,) = train(task, name, size, reward, 1, time.process_time)
    zero = log["frac_reward_zero_std" if name == "trl" else "advantage/frac_zero"]
    return {"seconds": seconds, "zero": zero}


def measure(task: Task, sizes: list[int], rounds: int, csv: Path) -> pd.DataFrame:
    """A row for each round, G, contender and share, printed and written as it is measured."""
    turn(task, sizes[0], "mc", SHARES[0])  # the first training of a process takes longer
    rows = []
    for number in range(rounds):
        for size in sizes:
            for name, share in random.Random(number).sample(TURNS, len(TURNS)):
                row = {"round": number, "G": size, "contender": name, "share": share, **turn(task, size, name, share)}
                rows.append(row)
                print(row, flush=True)
                pd.DataFrame(rows).to_csv(csv, index=False)
    return pd.DataFrame(rows)


def as_markdown(table: pd.DataFrame, parameters: int, length: int, precision: str) -> str:
    """A row for each share and G: TRL's seconds, our ratios to it, and the rows that each has left out."""
    seconds = table.pivot_table(index="round", columns=["G", "contender", "share"], values="seconds")
    zero = table.groupby(["G", "contender", "share"])["zero"].mean()
    rows = []
    for share in SHARES:
        for size in sorted(table["G"].unique()):
            base = seconds[size, "trl", SHARES[0]]
            row = {"Equal groups": f"{share:.0%}", "G": f"{size}", CONTENDERS["trl"].label: f"{base.median():.2g} s"}
            for name in ("mean", "mc"):
                ratio = seconds[size, name, share] / base
                row[CONTENDERS[name].label] = f"{ratio.median():.2f} ({ratio.min():.2f} to {ratio.max():.2f})"
                row["Rows with A = 0" + " " * (name == "mc")] = f"{zero[size, name, share]:.0%}"
            rows.append(row)
    text = (
        "Time of an optimizer step as a share of TRL's at the same G, and the rows of the update without an advantage: "
        f"the median of {len(seconds)} rounds (lowest to highest). {parameters / 1e6:.0f} million parameters in "
        f"{precision}, {PROMPTS_PER_STEP} prompts, completions of {length} tokens, no KL penalty, one CPU thread "
        f"({date.today():%Y-%m-%d}). Equal groups: the share of groups in which all rewards are equal; in the others a "
        "completion is right with probability 0.5."
    )
    return f"{text}\n\n{pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True)}\n"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, default=Path("reports/bench"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 4, 8], metavar="G")
    parser.add_argument("--quick", action="store_true", help="a tiny model, short completions and one round")
    parser.add_argument("--bf16", action="store_true", help="autocast to bf16, as TRL's default")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    options.output.mkdir(parents=True, exist_ok=True)
    length, rounds = (8, 1) if options.quick else (128, options.rounds)
    settings = SETTINGS | {"bf16": options.bf16}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder)
        parameters = save_model(model, SMALL if options.quick else SHAPE, torch.float32)
        task = Task(model, prompts_of("plain", PROMPTS_PER_STEP, 1), settings, PROMPTS_PER_STEP, length)
        table = measure(task, options.sizes, rounds, options.output / "training.csv")
    text = as_markdown(table, parameters, length, "bf16" if options.bf16 else "fp32")
    (options.output / "training.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
