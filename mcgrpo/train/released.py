"""The authors' release with its faults, each a switch: what `github.com/lotusroot-kim/MC-GRPO` (da07745) does.

`ReleasedConfig` and `ReleasedTrainer` with every switch off are `MCGRPOConfig` and `MCGRPOTrainer`, bit for bit. Which
of the release's trainers turns which switch on for which method is in `mcgrpo.study.protocols`. The code is our own.

Not reproduced: its vLLM server mode, in which some prompts are never generated and others' rows are graded against
another prompt's solution; which of several tied rows it drops (an index that torch leaves undefined: here, with
beta > 0 as in all its recipes, the first drawn); and unscorable rollouts, to which it gives a reward of 0 (here they
have no advantage and are dropped first; its own rewards always score).
"""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from mcgrpo.estimators import keep_largest_reward
from mcgrpo.estimators.scales import rescale_by_nonzero
from mcgrpo.trainer.config import MCGRPOConfig
from mcgrpo.trainer.trainer import MCGRPOTrainer, Rollouts

GroupBy = Literal["prompt", "position"]
DropRule = Literal["advantage", "reward"]


@dataclass
class ReleasedConfig(MCGRPOConfig):
    """`MCGRPOConfig` with the faults of the release, all off by default.

    Files and functions are those of the release, below `src/open_r1`.

    Args:
        group_by: which rows make a group. `prompt`: the rollouts of one prompt. `position`: the extra rollouts stand
            at the end of each process's rows, and every G + 1 rows that follow one another are a group, whichever
            prompts they answer (`_generate_and_score_completions` in `grpo_trainer_gsm.py` and `grpo_trainer_math.py`).
        rescale_by_nonzero: multiply the advantages of each group by its size over the number of those that are not
            0, after any division by the MAD (`_generate_and_score_completions` in `grpo_trainer_gsm.py`).
        drop_rule: which extra rows are dropped. `advantage`: those nearest to the centre (the paper's control: the
            smallest absolute advantage). `reward`: those of the smallest absolute reward, which are the failures
            (mean-centred methods in `grpo_trainer_gsm.py`).
        count_dropped_tokens: the loss of DAPO is divided by the tokens of all rows drawn, not only of those that are
            trained on (`_generate` in both trainers, whose count is taken before any row is dropped). Losses that are
            not normalised by the batch's tokens (`grpo`, `dr_grpo`) stay as they are.
    """

    group_by: GroupBy = field(default="prompt", metadata={"help": "Group rows by prompt, or by position."})
    rescale_by_nonzero: bool = field(
        default=False, metadata={"help": "Multiply advantages by group size / number of non-zero advantages."}
    )
    drop_rule: DropRule = field(
        default="advantage", metadata={"help": "Drop the smallest absolute advantage, or the smallest absolute reward."}
    )
    count_dropped_tokens: bool = field(
        default=False, metadata={"help": "Count dropped rows' tokens in DAPO's normaliser."}
    )

    def __post_init__(self):
        super().__post_init__()
        for name, choices in (("group_by", get_args(GroupBy)), ("drop_rule", get_args(DropRule))):
            if getattr(self, name) not in choices:
                raise ValueError(f"unknown {name} {getattr(self, name)!r}; there are: {', '.join(choices)}")


class ReleasedTrainer(MCGRPOTrainer):
    """`MCGRPOTrainer` with the faults that its `ReleasedConfig` turns on.

    With `group_by="position"` a group is G + 1 rows in the release's order: all `drawn/*` and `advantage/*` metrics
    describe such groups, a prompt may keep more or fewer than G rows, and `drawn/frac_groups_mixed` is the share of
    groups with rows of more than one prompt.
    """

    def _draw(self, inputs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Rollouts, Tensor]:
        drawn, rollouts, rewards = super()._draw(inputs)
        if self.args.count_dropped_tokens:
            self._tokens_drawn = self._count_tokens(rollouts)
        if self.args.group_by == "prompt":
            return drawn, rollouts, rewards
        size = self.num_generations + self.args.num_extra_rollouts
        order = positional_order(len(drawn) // size, self.num_generations, self.args.num_extra_rollouts)
        self._metrics["train"]["drawn/frac_groups_mixed"].append(share_mixed(order, size))
        rows = order.tolist()
        self._keep_extra_logs(rows, len(drawn))
        by_process = rewards.unflatten(0, (self.accelerator.num_processes, -1))
        return [drawn[row] for row in rows], rollouts.pick(rows), by_process[:, rows].flatten(0, 1)

    def _adjust(self, rewards: Tensor, advantages: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        if self.args.drop_rule == "reward":
            keep = keep_largest_reward(rewards, self.num_generations)
        if self.args.rescale_by_nonzero:
            advantages = rescale_by_nonzero(advantages)
        return super()._adjust(rewards, advantages, keep)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        if self.args.count_dropped_tokens and self.model.training:
            output["num_items_in_batch"] = self._tokens_drawn
        return output

    def _count_tokens(self, rollouts: Rollouts) -> Tensor:
        """Completion tokens of all rows drawn, over all processes; 0-dimensional."""
        count = (
            sum(map(len, rollouts.completion_ids)) if rollouts.tool_mask is None else sum(map(sum, rollouts.tool_mask))
        )
        return self.accelerator.gather(torch.tensor(count, device=self.accelerator.device)).sum()


def positional_order(prompts: int, num_generations: int, extra: int) -> Tensor:
    """The release's order of one process's rows: G of each prompt, then the extra ones of all prompts.

    Returns:
        (prompts x (G + extra),) indices into rows that stand prompt by prompt. With G = 2 and prompts A, B, C these
        are AAB BCC ABC where there was AAA BBB CCC: no group is pure, unless there is but one prompt.
    """
    rows = torch.arange(prompts * (num_generations + extra)).view(prompts, -1)
    extras = rows[:, num_generations:].T  # one round of extra rollouts after the other
    return torch.cat([rows[:, :num_generations].flatten(), extras.flatten()])


def share_mixed(order: Tensor, size: int) -> float:
    """Share of groups of `size` rows, in that order, that hold more than one prompt."""
    prompts = (order // size).view(-1, size)
    return (prompts != prompts[:, :1]).any(dim=1).float().mean().item()
