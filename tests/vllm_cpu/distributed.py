"""What one of several processes does; started by torchrun. `python distributed.py FOLDER JSON-SETTINGS`."""

import json
import sys
from pathlib import Path

from colocated import Watched, built, greedy, greedy_of_transformers
from tiny_training import dataset, history, loaded

from mcgrpo.train.sharding import check_sharded, fsdp_arguments

folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
loaded()  # each process makes a model of its own, and not the first for all, as it would from now on
if settings.pop("sharding", None) == "fsdp":
    settings |= fsdp_arguments(settings.pop("gradient_checkpointing", False), use_cpu=True)
trainer = built(folder, Watched, **settings)
prompts = trainer.processing_class(list(dataset()["prompt"]))["input_ids"]
rank = trainer.accelerator.process_index
check_sharded(trainer)
trainer.train()
behind = greedy(trainer, prompts) == greedy_of_transformers(trainer, prompts)
trainer.vllm_generation.sync_weights()
found = {
    "drawn": trainer.drawn,
    "prompts": [[prompt for prompt, _ in call] for call in trainer.calls],
    "differences": history(trainer, "sampling/sampling_logp_difference/max"),
    "same prompts": trainer.vllm_generation.generate(prompts[:1] * 8, None, 4)[1],
    "kl": history(trainer, "kl"),
    "held": [tuple(each.to_local().shape) for each in trainer.model.parameters() if hasattr(each, "to_local")],
    "synchronized before": behind,
    "synchronized": greedy(trainer, prompts) == greedy_of_transformers(trainer, prompts),
}
(folder / f"{rank}.json").write_text(json.dumps(found))
trainer.accelerator.end_training()
