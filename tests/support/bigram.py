"""A real softmax policy in closed form: a language model whose next token depends on the last one alone.

Every prompt is one token and every completion one token, so that the gradient of a prompt's row of logits is the update
that this prompt asks for, and one step over many prompts is as many independent samples of it.
"""

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch.nn import functional
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast, TrainerCallback
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

from mcgrpo import MCGRPOConfig, MCGRPOTrainer


class BigramConfig(PretrainedConfig):
    model_type = "bigram"


class Backbone(torch.nn.Module):
    def forward(self, input_ids, attention_mask=None, **kwargs):
        return BaseModelOutput(functional.one_hot(input_ids, self.size).float())


class Bigram(PreTrainedModel, GenerationMixin):
    """Column t of the head's weight holds the logits of what follows token t."""

    config_class = BigramConfig
    base_model_prefix = "model"

    def __init__(self, config):
        super().__init__(config)
        self.model, self.model.size = Backbone(), config.vocab_size
        self.lm_head = torch.nn.Linear(config.vocab_size, config.vocab_size, bias=False)
        self.post_init()

    def get_output_embeddings(self):
        return self.lm_head

    def forward(self, input_ids, attention_mask=None, logits_to_keep=0, **kwargs):
        return CausalLMOutput(logits=self.lm_head(self.model(input_ids)[0][:, -logits_to_keep:]))

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return {"input_ids": input_ids}


class Gradients(TrainerCallback):
    """Keeps the gradient of every optimizer step."""

    def __init__(self):
        self.steps = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.steps.append(model.lm_head.weight.grad.T.double())


def sampled_updates(folder, rewards, probabilities, prompts, steps, seed=0, **settings):
    """Updates of a policy that answers every prompt alike, by the trainer's own loss.

    Returns (prompts x steps, outcomes) float64: a row is what one prompt asks for, in the coordinates of its logits.

    Args:
        folder: of the trainer.
        rewards: of each outcome; an outcome is a token.
        probabilities: of each outcome.
        prompts: in a step.
        steps: between which the policy stays as it is.
        seed: of the rollouts.
        **settings: of `MCGRPOConfig`.
    """
    words = [f"a{outcome}" for outcome in range(len(rewards))] + [f"q{prompt}" for prompt in range(prompts)]
    words += ["<eos>", "<pad>"]
    tokenizer = Tokenizer(WordLevel({word: index for index, word in enumerate(words)}))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    marks = {"eos_token": "<eos>", "pad_token": "<pad>", "padding_side": "left"}
    processing = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks)
    special = {"eos_token_id": len(words) - 2, "pad_token_id": len(words) - 1}
    model = Bigram(BigramConfig(vocab_size=len(words), num_hidden_layers=1, **special))
    logits = torch.full((len(words),), -1e4)
    logits[: len(rewards)] = torch.tensor(probabilities).log()
    model.lm_head.weight.data[:] = logits[:, None]

    def reward(completion_ids, **kwargs):
        return [float(rewards[ids[0]]) for ids in completion_ids]

    rows = prompts * settings["num_generations"]
    fixed = {
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
        "gradient_checkpointing": False,
    }
    fixed |= {"learning_rate": 0.0, "beta": 0.0, "max_grad_norm": 0.0, "loss_type": "grpo", "max_completion_length": 1}
    args = MCGRPOConfig(
        str(folder), seed=seed, max_steps=steps, per_device_train_batch_size=rows, top_k=0, **fixed, **settings
    )
    data, gradients = Dataset.from_dict({"prompt": [f"q{prompt}" for prompt in range(prompts)]}), Gradients()
    trainer = MCGRPOTrainer(model, reward, args, train_dataset=data, processing_class=processing, callbacks=[gradients])
    trainer.train()
    asked = slice(len(rewards), len(rewards) + prompts)
    return torch.cat([-prompts * step[asked, : len(rewards)] for step in gradients.steps])
