"""What one of several processes does; started by torchrun. `python distributed.py FOLDER JSON-SETTINGS`."""

import json
import sys
from pathlib import Path

from colocated import Watched, built, greedy, greedy_of_transformers
from tiny_training import dataset, history

folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
trainer = built(folder, Watched, **settings)
rank = trainer.accelerator.process_index
trainer.train()
trainer.vllm_generation.sync_weights()
prompts = trainer.processing_class(list(dataset()["prompt"]))["input_ids"]
found = {
    "drawn": trainer.drawn,
    "prompts": [[prompt for prompt, _ in call] for call in trainer.calls],
    "differences": history(trainer, "sampling/sampling_logp_difference/max"),
    "same prompts": trainer.vllm_generation.generate(prompts[:1] * 8, None, 4)[1],
    "synchronized": greedy(trainer, prompts) == greedy_of_transformers(trainer, prompts),
}
(folder / f"{rank}.json").write_text(json.dumps(found))
trainer.accelerator.end_training()
