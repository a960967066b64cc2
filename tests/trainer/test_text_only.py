"""Images are refused, in either form of TRL's, before anything is computed with a part of the row missing."""

import pytest
from datasets import Dataset
from tiny_training import SETTINGS, Ours, dataset, digits_reward, model_folder, trainer_of
from transformers import AutoTokenizer, ProcessorMixin

from mcgrpo import MCGRPOConfig, MCGRPOTrainer

IMAGE = {"type": "image", "image": "cat.png"}
LOOK = {"type": "text", "text": "Look."}
QUESTION = {"type": "text", "text": "What is it?"}
WITH_IMAGES = {
    "column-image": ({"prompt": "What is it?", "image": "cat.png"}, "column 'image'.*What is it"),
    "column-images": ({"prompt": "What is it?", "images": ["cat.png"]}, "column 'images'"),
    "content": ({"prompt": [{"role": "user", "content": [IMAGE, QUESTION]}]}, "part of type 'image'.*What is it"),
    "later": (
        {"prompt": [{"role": "system", "content": [LOOK]}, {"role": "user", "content": [QUESTION, IMAGE]}]},
        "part of type 'image'",
    ),
}


class Both(ProcessorMixin):
    """A processor of a multimodal model, of which only the tokenizer is needed here."""

    def __init__(self, tokenizer):
        super().__init__(tokenizer)


@pytest.mark.parametrize(("row", "message"), WITH_IMAGES.values(), ids=WITH_IMAGES)
def test_images_are_refused_before_a_model_is_loaded_or_a_later_row_is_drawn_from(row, message, tmp_path):
    with pytest.raises(ValueError, match=f"trains on text alone, but a row has a {message}"):
        MCGRPOTrainer("unused", digits_reward, MCGRPOConfig(str(tmp_path), **SETTINGS), Dataset.from_list([row] * 4))
    trainer = trainer_of(Ours, tmp_path)
    trainer.model.train()
    with pytest.raises(ValueError, match=message):
        trainer._generate_and_score_completions([{"prompt": "Sam has 2 cards."}] * 4 + [row] * 4)


def test_a_processor_of_images_is_refused(tmp_path):
    processor = Both(AutoTokenizer.from_pretrained(model_folder()))
    args = MCGRPOConfig(str(tmp_path), **SETTINGS)
    with pytest.raises(ValueError, match=r"pass processing_class=processor\.tokenizer, not a Both"):
        MCGRPOTrainer("unused", digits_reward, args, dataset(), processing_class=processor)
