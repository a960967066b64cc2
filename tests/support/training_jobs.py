"""Training jobs on a random model: their inputs, and what they leave."""

import json
from dataclasses import replace

import runs
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from mcgrpo.data.toy.examples import examples
from mcgrpo.data.toy.models import build
from mcgrpo.files import write_jsonl
from mcgrpo.records import Example
from mcgrpo.train.job import Job

RUN = replace(
    runs.RUN,
    num_generations=2,
    training={"per_device_train_batch_size": 4, "max_steps": 3, "max_completion_length": 8, "beta": 0.0},
)
SPEC = {"architecture": "qwen3", "hidden_size": 32, "heads": 1, "layers": 1, "intermediate_size": 32}


def changed(**training):
    return replace(RUN, training={**RUN.training, **training})


def make_inputs(folder):
    """A random model, and questions to train and to select on."""
    build(SPEC, folder / "model")
    untie(folder / "model", folder / "untied")
    rows: list[Example] = [*examples("two-step", "train", 16, 0), *examples("two-step", "test", 8, 0)]
    write_jsonl(folder / "data.jsonl", rows)
    return folder


def untie(model, folder):
    """A random model of the same shape whose output layer has weights of its own."""
    torch.manual_seed(0)
    untied = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model, tie_word_embeddings=False))
    untied.generation_config = GenerationConfig.from_pretrained(model)
    for part in (untied, AutoTokenizer.from_pretrained(model)):
        part.save_pretrained(folder)


def job(inputs, folder, run=RUN, model="model", **options):
    data = inputs / "data.jsonl"
    home = folder / "unfinished"
    return Job(run, inputs / model, data, folder / "run", folder / "weights", home, test=data, **options)


def outcome(folder):
    return json.loads((folder / "run.json").read_text())["outcome"]


def steps(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
