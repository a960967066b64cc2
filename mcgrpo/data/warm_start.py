"""Supervised training before a study, so that reinforcement learning starts from a model that solves something.

    python -m mcgrpo.data.warm_start --spec JSON --model FOLDER --data FILE ... --output FOLDER

TRL's `SFTTrainer` trains on the `warm` splits of data sets: the prompt as in the study, as completion the `solution`
with the answer in tags, as the grader reads it. The folder has the model, its tokenizer, `warm_start.json` and the
`source.json` of the model, if it has one.
"""

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.trainer_callback import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from mcgrpo import command_line
from mcgrpo.data.draw import draw
from mcgrpo.data.prompts import as_prompt, render, token_ids
from mcgrpo.files import RecordError, as_new, as_record, read_jsonl, whole_folder, write_json
from mcgrpo.grade.rewards import is_accurate, judge
from mcgrpo.records import Example
from mcgrpo.study.paths import SOURCE
from mcgrpo.sums import model_sum, sha256, write_sums

CHECK_EVERY, HELD_OUT, BATCH = 20, 256, 64
"""Steps between two checks of `until_solved`; the problems of a check, and how many are generated at a time."""


@dataclass(frozen=True)
class WarmStart:
    """AdamW with a cosine schedule, a warm-up of 5% and gradients clipped at 1.

    Args:
        datasets: names of data sets with a `warm` split.
        prompt: name of the prompt, see `mcgrpo.data.prompts`; `chat_template_kwargs` are those of its template.
        until_solved: training ends once the model solves this share of problems of the first data set's `train` split,
            sampled at temperature 1 and graded as the task says; `steps` is then the most.
        max_new_tokens: of a completion that is checked; `stop` are strings that end it.
        bf16: autocast; the weights stay in fp32.
    """

    datasets: list[str]
    steps: int
    batch_size: int
    learning_rate: float
    prompt: str
    task: str
    until_solved: float | None = None
    max_new_tokens: int = 64
    bf16: bool = False
    seed: int = 0
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    stop: list[str] = field(default_factory=list)


def completion(example: Example) -> str:
    """A solution as the grader reads it: it stays as it is if it has the answer in tags already."""
    if "<answer>" in example.solution:
        return example.solution
    return f"<think>{example.solution}</think>\n<answer>{example.answer}</answer>"


def demonstrations(paths: Sequence[Path], spec: WarmStart) -> Dataset:
    """The `warm` splits of data sets as TRL's prompts and completions, text or messages.

    Raises:
        RecordError: for a data set without a `warm` split, or a problem without a solution.
    """
    more = {"chat_template_kwargs": spec.chat_template_kwargs} if spec.chat_template_kwargs else {}
    pairs = []
    for path in paths:
        chosen = [example for example in read_jsonl(path, Example) if example.split == "warm"]
        if missing := [example.id for example in chosen if not example.solution] or ([] if chosen else ["all"]):
            raise RecordError(f"{path}: no solution of problem {missing[0]} in split 'warm'")
        for example in chosen:
            prompt, text = as_prompt(spec.prompt, example.question), completion(example)
            answer = text if isinstance(prompt, str) else [{"role": "assistant", "content": text}]
            pairs.append({"prompt": prompt, "completion": answer, **more})
    return Dataset.from_list(pairs)


def share_solved(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, problems: list[Example], spec: WarmStart
) -> float:
    """The share of problems that one completion sampled at temperature 1 solves; drawn as an evaluation's are.

    The training's random state stays as it was.
    """
    settings = {"temperature": 1.0, "top_p": 1.0, "max_new_tokens": spec.max_new_tokens}
    settings |= {"stop": spec.stop}
    prompts = [as_prompt(spec.prompt, each.question) for each in problems]
    ids = token_ids(spec.prompt, render(prompts, tokenizer, spec.chat_template_kwargs), tokenizer)
    texts: list[str] = []
    with torch.random.fork_rng():
        for first in range(0, len(ids), BATCH):
            drawn = draw(model, tokenizer, ids[first : first + BATCH], "sampled", spec.seed + first, settings)
            texts += [text for text, _ in drawn]
    judged = judge(spec.task, texts, [each.answer for each in problems], [each.solution for each in problems])
    return sum(is_accurate(each.verdict) for each in judged) / len(problems)


class UntilSolved(TrainerCallback):
    """End a training once the model solves a share of held-out problems; `share` is the last one measured."""

    def __init__(self, spec: WarmStart, held_out: list[Example]) -> None:
        self.spec, self.held_out = spec, held_out
        self.share: float | None = None

    def on_step_end(
        self, args: Any, state: Any, control: Any, model: Any = None, processing_class: Any = None, **_: Any
    ) -> None:
        """Check every `CHECK_EVERY` steps and at the last one."""
        if self.spec.until_solved is None or (state.global_step % CHECK_EVERY and state.global_step < args.max_steps):
            return
        model.eval()
        self.share = share_solved(model, processing_class, self.held_out, self.spec)
        model.train()
        print(f"warm start: {self.share:.1%} of {len(self.held_out)} held-out problems solved", flush=True)
        control.should_training_stop = self.share >= self.spec.until_solved


def warm_start(spec: WarmStart, model: Path, data: Sequence[Path], output: Path) -> None:
    """Train the model in a folder and write it to another, atomically.

    Args:
        data: files of the data sets, in the order of `spec.datasets`.

    Raises:
        RecordError: for data that cannot be trained on.
        ValueError: if the model does not reach `until_solved` within `steps`.
    """
    started = time.time()
    tokenizer = AutoTokenizer.from_pretrained(model)
    held_out = [each for each in read_jsonl(data[0], Example) if each.split == "train"][:HELD_OUT]
    check = UntilSolved(spec, held_out)
    with whole_folder(output) as folder:
        trainer = SFTTrainer(
            model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
            args=arguments(spec, folder),
            train_dataset=demonstrations(data, spec),
            processing_class=tokenizer,
            callbacks=[check],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        if spec.until_solved is not None and check.share < spec.until_solved:
            raise ValueError(
                f"warm_start.until_solved {spec.until_solved}: {check.share:.3f} of {len(held_out)} held-out problems "
                f"were solved after {spec.steps} steps: allow more `steps`"
            )
        trainer.model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if (source := model / SOURCE).is_file():
            shutil.copy(source, folder)
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        record = {"spec": vars(spec), "data": {path.name: sha256(path) for path in data}}
        record |= {"steps": trainer.state.global_step, "share_solved": check.share, "losses": losses}
        write_json(folder / "warm_start.json", record | {"seconds": time.time() - started})


def arguments(spec: WarmStart, folder: Path) -> SFTConfig:
    """The arguments of TRL's trainer, which keeps no checkpoint."""
    return SFTConfig(
        output_dir=str(folder),
        max_steps=spec.steps,
        per_device_train_batch_size=spec.batch_size,
        learning_rate=spec.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=0.05,
        weight_decay=0.01,
        max_grad_norm=1.0,
        use_cpu=not torch.cuda.is_available(),  # without it bf16 is refused on a CPU
        bf16=spec.bf16,
        seed=spec.seed,
        gradient_checkpointing=False,
        max_length=None,
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=torch.cuda.is_available(),
    )


def main() -> None:
    """Train one model of a study before the study."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--spec", type=json.loads, required=True, help="the model's warm_start, as JSON")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--sums", type=Path, help="the list of the sums of its files, which are compared")
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with command_line.errors(ValueError):
        spec = as_record(WarmStart, options.spec, "warm_start")
        model_sum(options.model, options.sums)
        warm_start(spec, options.model, options.data, options.output)
        as_new(options.output)
        write_sums(options.output)


if __name__ == "__main__":
    main()
