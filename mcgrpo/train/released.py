"""The faults of the authors' release, `github.com/lotusroot-kim/MC-GRPO` (da07745), each a switch. The code is our own.

With every switch off `ReleasedConfig` and `ReleasedTrainer` are `MCGRPOConfig` and `MCGRPOTrainer`, bit for bit.
`mcgrpo.study.protocols` lists which of the release's trainers has which fault for which method.

Not reproduced: its vLLM server mode, in which some prompts are never generated and others' rows are graded against
another prompt's solution; the choice among tied rows to drop, which torch leaves undefined there (here the first drawn,
since beta > 0 in all its recipes); the reward of 0 for unscorable rollouts (here they have no advantage and are dropped
first; its own reward functions always give a score).
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from mcgrpo.estimators import Advantages, keep_largest
from mcgrpo.trainer.config import MCGRPOConfig
from mcgrpo.trainer.drawn import Drawn, Rollouts
from mcgrpo.trainer.trainer import MCGRPOTrainer


@dataclass
class ReleasedConfig(MCGRPOConfig):
    """`MCGRPOConfig` with the faults of the release, all off by default.

    Files and functions in parentheses are those of the release, below `src/open_r1`.

    Args:
        group_by: which rows form a group. `prompt`: the rollouts of one prompt. `position`: the extra rollouts come
            last among each process's rows, and every G + 1 consecutive rows are a group, whatever their prompts
            (`_generate_and_score_completions` in `grpo_trainer_gsm.py` and `grpo_trainer_math.py`).
        rescale_by_nonzero: multiply the advantages of each group by its size / the number of them that are not 0,
            after any division by the MAD (`_generate_and_score_completions` in `grpo_trainer_gsm.py`).
        drop_rule: which extra rows are dropped. `advantage`: those nearest to the centre (the paper's control: the
            smallest absolute advantage). `reward`: those of the smallest absolute reward, which are the failures
            (mean-centred methods in `grpo_trainer_gsm.py`).
        count_dropped_tokens: divide the loss of DAPO by the tokens of all rows drawn, not only of the kept rows
            (`_generate` in both trainers counts them before any row is dropped). Losses that are not normalised by
            the batch's tokens (`grpo`, `dr_grpo`) are not affected.
    """

    group_by: Literal["prompt", "position"] = field(
        default="prompt", metadata={"help": "Group rows by prompt, or by position."}
    )
    rescale_by_nonzero: bool = field(
        default=False, metadata={"help": "Multiply advantages by group size / number of non-zero advantages."}
    )
    drop_rule: Literal["advantage", "reward"] = field(
        default="advantage", metadata={"help": "Drop the smallest absolute advantage, or the smallest absolute reward."}
    )
    count_dropped_tokens: bool = field(
        default=False, metadata={"help": "Count dropped rows' tokens in DAPO's normaliser."}
    )


class ReleasedTrainer(MCGRPOTrainer):
    """`MCGRPOTrainer` with the faults that its `ReleasedConfig` turns on.

    The only changes: `_draw` groups rows by position, `_modify_estimate` changes advantages and kept rows, and
    `_prepare_kept` replaces the normaliser of DAPO.

    With `group_by="position"` all `drawn/*` and `advantage/*` metrics describe groups of G + 1 rows by position, a
    prompt may keep more or fewer than G rows, and `drawn/frac_groups_mixed` is the share of groups with rows of more
    than one prompt.
    """

    def _draw(self, inputs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Rollouts, Tensor]:
        inputs, rollouts, rewards = super()._draw(inputs)
        if self.args.group_by == "prompt":
            return inputs, rollouts, rewards
        size, extra = self.num_generations, self.args.num_extra_rollouts
        order = positional_order(len(inputs) // (size + extra), size, extra)
        self._add_metric("drawn/frac_groups_mixed", share_mixed(order, size + extra))
        rows = order.tolist()
        self._pick_logs(rows, len(inputs))
        by_process = rewards.unflatten(0, (self.accelerator.num_processes, -1))
        return [inputs[row] for row in rows], rollouts.pick(rows), by_process[:, rows].flatten(0, 1)

    def _modify_estimate(self, estimated: Advantages) -> Advantages:
        if self.args.drop_rule == "reward":
            # Drop the smallest absolute rewards, which are the failures
            keep = keep_largest(estimated.rewards, torch.zeros_like(estimated.rewards), self.num_generations)
            estimated = replace(estimated, keep=keep)
        if self.args.rescale_by_nonzero:
            estimated = replace(estimated, advantages=rescale_by_nonzero(estimated.advantages))
        return super()._modify_estimate(estimated)

    def _prepare_kept(self, drawn: Drawn) -> dict[str, Any]:
        output = super()._prepare_kept(drawn)
        if self.args.count_dropped_tokens:
            output["num_items_in_batch"] = drawn.lengths.sum()  # over all processes
        return output


def positional_order(prompts: int, num_generations: int, extra: int) -> Tensor:
    """The release's order of one process's rows: G of each prompt, then the extra ones of all prompts.

    Returns:
        (prompts x (G + extra),) indices into rows that are ordered by prompt. With G = 2 and prompts A, B, C this turns
        AAA BBB CCC into AAB BCC ABC: every group is mixed, unless there is only one prompt.
    """
    rows = torch.arange(prompts * (num_generations + extra)).view(prompts, -1)
    extras = rows[:, num_generations:].T  # one round of extra rollouts after the other
    return torch.cat([rows[:, :num_generations].flatten(), extras.flatten()])


def rescale_by_nonzero(advantages: Tensor) -> Tensor:
    """Advantages times rows of the group / its non-zero advantages; (groups, drawn) -> (groups, drawn).

    With one success among three and a MAD of 0, an advantage of 2000 becomes 6000.
    """
    nonzero = (advantages != 0).sum(dim=1, keepdim=True).clamp(min=1)
    return advantages * (advantages.size(1) / nonzero)


def share_mixed(order: Tensor, size: int) -> float:
    """Share of groups of `size` rows, in that order, that hold more than one prompt."""
    prompts = (order // size).view(-1, size)
    return (prompts != prompts[:, :1]).any(dim=1).float().mean().item()
