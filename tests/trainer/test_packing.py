"""The rows that a compact update computes, and their order and padding."""

import pytest
import torch
from transformers import GPT2Config, Qwen3Config

from mcgrpo.trainer import packing


def batch_of(advantages, completions, prompts=None):
    """Rows of given completion (and prompt) lengths, padded to 6 (4) columns."""
    columns = torch.arange(6)
    mask = (columns < torch.tensor(completions).unsqueeze(1)).long()
    prompts = torch.tensor(prompts or [4] * len(advantages)).unsqueeze(1)
    return {
        "advantages": torch.tensor(advantages),
        "completion_ids": mask * 7,
        "completion_mask": mask,
        "importance_sampling_ratio": torch.ones(len(advantages), 1),
        "prompt_ids": torch.full((len(advantages), 4), 5),
        "prompt_mask": (torch.arange(4) >= 4 - prompts).long(),
        "num_items_in_batch": mask.sum(),
    }


def test_tokens_of_tools_do_not_make_a_row_active():
    batch = batch_of([1.0, 1.0], [2, 2]) | {"tool_mask": torch.tensor([[0] * 6, [0, 1, 0, 0, 0, 0]])}
    assert packing.active(batch, drop_zeros=True).tolist() == [False, True]


def test_like_lengths_go_together_in_as_few_parts_as_hold_them():
    lengths = torch.tensor([9, 1, 8, 2, 7, 3])
    parts = packing.divide(torch.arange(6), lengths, size=3, parts=4)
    assert [part.tolist() for part in parts] == [[], [], [1, 3, 5], [0, 2, 4]]


@pytest.mark.parametrize(
    ("rope", "sees"),
    [
        ({"rope_type": "default"}, (True, True)),
        ({"rope_type": "yarn", "factor": 2.0}, (True, True)),
        ({"rope_type": "dynamic", "factor": 2.0}, (False, False)),
        ({"full": {"rope_type": "default"}, "local": {"rope_type": "longrope"}}, (False, False)),
        ({"rope_type": "yarn", "llama_4_scaling_beta": 0.1}, (True, False)),
        (None, (True, False)),
    ],
)
def test_padding_is_cut_off_where_the_model_does_not_see_it(rope, sees):
    class Config:
        rope_parameters = rope

        def get_text_config(self):
            return self

    assert packing.removable_padding(Config()) == sees


@pytest.mark.parametrize(("config", "sees"), [(Qwen3Config(), (True, True)), (GPT2Config(), (True, False))])
def test_positions_of_real_models(config, sees):
    assert packing.removable_padding(config) == sees


def test_positions_of_prompts_stay_where_they_count():
    assert packing.trim(batch_of([1.0], [3], prompts=[1]), prompts=False)["prompt_ids"].shape == (1, 4)


def test_widths_are_multiples_as_trl_pads():
    trimmed = packing.trim(batch_of([1.0], [3], prompts=[1]), prompts=True, multiple=2)
    assert trimmed["prompt_ids"].shape == (1, 2) and trimmed["completion_ids"].shape == (1, 4)
